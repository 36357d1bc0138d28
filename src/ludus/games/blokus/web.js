// Blokus: choose a piece, turn and flip it, see where it fits, place it.
import { addStyle, Board, element } from "/web/board.js";

addStyle("blokus", `
.ludus-board.blokus { --board-width: 40rem; }
.blokus .cells { gap: 1px; }
.blokus .cells .cell { border-radius: 1px; }
.blokus .cells .cell.corner::after { content: ""; width: 30%; height: 30%; border-radius: 50%; background: var(--own); opacity: .55; }
.blokus .cells .cell.fits::after { content: ""; width: 45%; height: 45%; border-radius: 50%; background: var(--own); }
.blokus .cells .cell:has(.heat)::after { position: absolute; top: 1px; right: 1px; width: 22%; height: 22%; }
.blokus .cells .cell.ghost::after { display: none; }
.blokus .cells .cell.ghost.good { background: color-mix(in srgb, var(--own) 65%, #ffffff) !important; }
.blokus .cells .cell.ghost.wrong { background: repeating-linear-gradient(45deg, var(--bad) 0 3px, transparent 3px 7px) !important; }
.blokus .tools { display: flex; flex-wrap: wrap; gap: .4rem; margin: .6rem 0; min-height: 2.3rem; }
.blokus .tray { display: flex; flex-wrap: wrap; gap: .3rem; min-height: 11rem; align-content: flex-start; }
.blokus .tray .piece { padding: .25rem; min-height: 0; width: 3.2rem; height: 3.2rem; display: flex; align-items: center; justify-content: center; }
.blokus .tray .piece[aria-pressed=true] { outline: 3px solid var(--accent); outline-offset: 0; }
.blokus .tray .piece[aria-disabled] { opacity: .35; cursor: default; }
.blokus .standing { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .4rem 0 0; padding: 0; list-style: none; font-size: .9rem; min-height: 1.4rem; }
.blokus .standing b { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
`);

const KEYS = "Turn: R or the wheel. Flip: F. Next piece: N, previous: P.";

// Squares as [row, column], moved to the corner and in order.
function settled(squares) {
  const top = Math.min(...squares.map(([row]) => row));
  const left = Math.min(...squares.map(([, column]) => column));
  return squares.map(([row, column]) => [row - top, column - left]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

const turned = (squares) => settled(squares.map(([row, column]) => [column, -row]));
const flipped = (squares) => settled(squares.map(([row, column]) => [row, -column]));
const keyOf = (squares) => squares.map((square) => square.join()).join(";");

function squaresOf(drawing) {
  const found = [];
  drawing.split("/").forEach((line, row) => [...line].forEach((mark, column) => mark === "#" && found.push([row, column])));
  return settled(found);
}

// The square that follows the pointer: the one nearest to the middle.
function middleOf(squares) {
  const mean = [0, 1].map((axis) => squares.reduce((sum, square) => sum + square[axis], 0) / squares.length);
  const away = ([row, column]) => (row - mean[0]) ** 2 + (column - mean[1]) ** 2;
  return squares.reduce((best, square) => (away(square) < away(best) ? square : best));
}

class Blokus extends Board {
  constructor(root, play) {
    super(root, play, { pick: () => null });
    root.classList.add("blokus");
    Object.assign(this, { piece: "", squares: [], ghost: null, shapes: new Map(), byPiece: new Map(), pointed: -1 });
    const tool = (name, run) => element("button", { type: "button", onclick: run }, name);
    this.passing = tool("Pass", () => this.play(this.passes));
    this.placing = tool("Place", () => this.place());
    this.tools = element("div", { class: "tools", role: "group", "aria-label": "Piece" },
      tool("Turn", () => this.change(turned)), tool("Flip", () => this.change(flipped)), this.placing, this.passing);
    this.tray = element("div", { class: "tray", role: "group", "aria-label": "Your pieces" });
    this.standing = element("ul", { class: "standing" });
    root.append(this.standing, this.tools, this.tray, element("p", { class: "note" }, KEYS));
    this.grid.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse" && event.target.dataset.cell) this.point(Number(event.target.dataset.cell));
    });
    this.grid.addEventListener("wheel", (event) => { event.preventDefault(); this.change(turned); }, { passive: false });
    root.addEventListener("keydown", (event) => this.letter(event));
  }

  update(view, hints) {
    const moved = !this.view || this.view.number !== view.number;
    this.root.style.setProperty("--own", view.colours[view.seat]);
    if (moved) this.learn(view);
    this.hints = hints;
    super.update(view, hints);
    this.drawTray();
    this.drawStanding();
    if (moved) this.chooseDefault();
    else this.redraw();
  }

  // Legal placements by shape, and the shapes of each piece that fit somewhere.
  learn(view) {
    const wide = view.columns.length;
    this.shapes = new Map();
    this.byPiece = new Map();
    this.passes = view.moves.find((move) => move.length === 1)?.[0];
    const pieces = new Map();
    for (const [name, drawing] of Object.entries(view.pieces)) {
      let squares = squaresOf(drawing);
      for (let side = 0; side < 2; side++, squares = flipped(squares))
        for (let turn = 0; turn < 4; turn++, squares = turned(squares)) pieces.set(keyOf(squares), name);
    }
    for (const [action, ...cells] of view.moves) {
      if (!cells.length) continue;
      const all = cells.map((cell) => [Math.floor(cell / wide), cell % wide]);
      const key = keyOf(settled(all));
      const corner = [Math.min(...all.map((each) => each[0])), Math.min(...all.map((each) => each[1]))];
      if (!this.shapes.has(key)) this.shapes.set(key, []);
      this.shapes.get(key).push({ action, cells: new Set(cells), corner });
      const piece = pieces.get(key);
      if (!this.byPiece.has(piece)) this.byPiece.set(piece, settled(all));
    }
    this.ghost = null;
  }

  chooseDefault() {
    if (this.byPiece.has(this.piece) && this.shapes.has(keyOf(this.squares))) return this.redraw();
    const largest = [...this.byPiece.keys()].sort((a, b) => this.byPiece.get(b).length - this.byPiece.get(a).length)[0];
    this.choose(largest ?? "");
  }

  choose(piece) {
    this.piece = piece;
    this.squares = this.byPiece.get(piece) ?? [];
    this.ghost = null;
    this.drawTray();
    this.redraw();
  }

  change(how) {
    if (!this.squares.length) return;
    this.squares = how(this.squares);
    this.ghost = null;
    this.drawTray();
    if (this.pointed >= 0) this.point(this.pointed);
    else this.redraw();
  }

  next(step) {
    const fitting = (this.view.left[this.view.seat] ?? []).filter((piece) => this.byPiece.has(piece));
    if (fitting.length) this.choose(fitting[(fitting.indexOf(this.piece) + step + fitting.length) % fitting.length]);
  }

  // The legal placement of the piece, as it is turned, that covers a cell and is nearest to where it is held.
  point(cell) {
    this.pointed = cell;
    if (!this.squares.length) return;
    const wide = this.view.columns.length;
    const middle = middleOf(this.squares);
    const corner = [Math.floor(cell / wide) - middle[0], (cell % wide) - middle[1]];
    const away = (each) => Math.abs(each.corner[0] - corner[0]) + Math.abs(each.corner[1] - corner[1]);
    const fitting = (this.shapes.get(keyOf(this.squares)) ?? []).filter((each) => each.cells.has(cell));
    const best = fitting.reduce((found, each) => (!found || away(each) < away(found) ? each : found), null);
    this.ghost = best ?? { action: null, cells: new Set(this.squares
      .map(([row, column]) => [row + corner[0], column + corner[1]])
      .filter(([row, column]) => row >= 0 && column >= 0 && row < this.view.rows.length && column < wide)
      .map(([row, column]) => row * wide + column)) };
    this.redraw();
  }

  place() {
    if (this.ghost?.action != null) this.play(this.ghost.action);
  }

  // A finger can't hover: its first tap shows the piece, and one on the piece places it.
  clicked(cell, event) {
    const again = event.pointerType !== "touch" || this.ghost?.cells.has(cell);
    if (!again || !this.ghost?.cells.has(cell)) this.point(cell);
    if (again) this.place();
  }

  suggest(action) {
    for (const [key, placements] of this.shapes) {
      const found = placements.find((each) => each.action === action);
      if (!found) continue;
      const squares = key.split(";").map((square) => square.split(",").map(Number));
      this.piece = [...this.byPiece].find(([piece]) => this.pieceOf(squares) === piece)?.[0] ?? this.piece;
      this.squares = squares;
      this.ghost = found;
      this.drawTray();
      this.redraw();
    }
  }

  pieceOf(squares) {
    const forms = new Set();
    let form = squares;
    for (let side = 0; side < 2; side++, form = flipped(form))
      for (let turn = 0; turn < 4; turn++, form = turned(form)) forms.add(keyOf(form));
    return Object.keys(this.view.pieces).find((name) => forms.has(keyOf(squaresOf(this.view.pieces[name]))));
  }

  focused(number) {
    super.focused(number);
    if (number >= 0 && this.cells[number].matches(":focus-visible")) this.point(number);
  }

  letter(event) {
    const keys = { r: () => this.change(turned), f: () => this.change(flipped), n: () => this.next(1), p: () => this.next(-1) };
    const run = !event.ctrlKey && !event.metaKey && keys[event.key.toLowerCase()];
    if (!run) return;
    event.preventDefault();
    run();
  }

  redraw() {
    const placements = this.shapes.get(keyOf(this.squares)) ?? [];
    const middle = this.squares.length ? middleOf(this.squares) : [0, 0];
    const wide = this.view.columns.length;
    const fits = new Set(placements.map(({ corner }) => (corner[0] + middle[0]) * wide + corner[1] + middle[1]));
    const corners = new Set(this.view.moves.length ? this.view.corners : []);
    this.cells.forEach((cell, number) => {
      const ghost = this.ghost?.cells.has(number) ?? false;
      cell.classList.toggle("fits", fits.has(number));
      cell.classList.toggle("corner", corners.has(number) && !fits.has(number));
      cell.classList.toggle("ghost", ghost);
      cell.classList.toggle("good", ghost && this.ghost.action != null);
      cell.classList.toggle("wrong", ghost && this.ghost.action == null);
      if (fits.has(number)) cell.removeAttribute("aria-disabled");
      else cell.setAttribute("aria-disabled", "true");
      const here = fits.has(number) ? `, ${this.piece} fits` : "";
      cell.setAttribute("aria-label", `${this.name(number)}: ${this.view.cells[number] >= 0 ? this.view.marks[this.view.cells[number]] : "free"}${here}`);
    });
    this.placing.disabled = this.ghost?.action == null;
    this.passing.disabled = this.passes === undefined;
  }

  drawTray() {
    const held = this.tray.contains(document.activeElement) ? document.activeElement.dataset.piece : null;
    this.tray.replaceChildren(...(this.view?.left[this.view.seat] ?? []).map((piece) => {
      const fits = this.byPiece.has(piece);
      const squares = piece === this.piece && this.squares.length ? this.squares : squaresOf(this.view.pieces[piece]);
      return element("button", { type: "button", class: "piece", "data-piece": piece, "aria-label": `Piece ${piece}${fits ? "" : ", fits nowhere"}`,
        "aria-pressed": piece === this.piece ? "true" : "false", "aria-disabled": fits ? false : "true",
        onclick: () => fits && this.choose(piece) }, this.picture(squares));
    }));
    if (held) this.tray.querySelector(`[data-piece="${held}"]`)?.focus();
  }

  picture(squares) {
    const space = "http://www.w3.org/2000/svg";
    const svg = document.createElementNS(space, "svg");
    const [high, wide] = [0, 1].map((axis) => 1 + Math.max(...squares.map((square) => square[axis])));
    const whole = { viewBox: `0 0 ${wide} ${high}`, width: `${9 * wide}`, height: `${9 * high}`, "aria-hidden": "true" };
    for (const [name, value] of Object.entries(whole)) svg.setAttribute(name, value);
    for (const [row, column] of squares) {
      const square = document.createElementNS(space, "rect");
      const place = { x: column + 0.04, y: row + 0.04, width: 0.92, height: 0.92, fill: this.view.colours[this.view.seat] };
      for (const [name, value] of Object.entries(place)) square.setAttribute(name, value);
      svg.append(square);
    }
    return svg;
  }

  drawStanding() {
    const { view } = this;
    this.standing.replaceChildren(...view.points.map((points, seat) => {
      const colour = element("b", { style: `background:${view.colours[seat]}` });
      const stuck = view.stuck[seat] ? ", no move left" : "";
      return element("li", {}, colour, ` ${view.names?.[seat] ?? `seat ${seat}`}: ${points} points, ${view.left[seat].length} pieces left${stuck}`);
    }));
  }
}

export default (root, play) => new Blokus(root, play);
