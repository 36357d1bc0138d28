// Draws any board of cells, and what other modules need to draw theirs: elements, styles, keys.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function addStyle(name, css) {
  if (document.getElementById(`style-${name}`)) return;
  document.head.append(element("style", { id: `style-${name}` }, css));
}

// Black or white, whichever reads better on a colour such as #2563eb.
export function inkOn(colour) {
  const light = [1, 3, 5].map((at) => {
    const part = parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.18 ? "#000000" : "#ffffff";
}

const [COLD, HOT] = [[253, 224, 239], [142, 1, 82]]; // pink to purple, because no game's pieces have these colours

export function heatColour(share) {
  const warmth = Math.sqrt(Math.min(1, share)); // the root, so that second thoughts show too
  return `#${COLD.map((cold, part) => Math.round(cold + warmth * (HOT[part] - cold)).toString(16).padStart(2, "0")).join("")}`;
}

const SEEN = 0.005;

addStyle("board", `
.ludus-board { width: 100%; max-width: var(--board-width, 34rem); margin: 0 auto; touch-action: manipulation; }
.ludus-board .cells { display: grid; gap: 2px; user-select: none; }
.ludus-board .name { display: flex; align-items: center; justify-content: center; color: var(--soft); font-size: .75rem; }
.ludus-board .cells .cell { aspect-ratio: 1; min-width: 0; min-height: 0; padding: 0; border: 1px solid var(--line);
  border-radius: 3px; background: var(--raised); font-weight: 700; font-size: var(--mark, 1rem); line-height: 1;
  overflow: hidden; position: relative; display: flex; align-items: center; justify-content: center; }
.ludus-board .cells .cell[aria-disabled] { cursor: default; }
.ludus-board .cells .cell.round { border-radius: 50%; }
.ludus-board .cells .cell.fresh { box-shadow: inset 0 0 0 3px var(--ink), inset 0 0 0 5px var(--ground); }
.ludus-board .cells .cell:focus-visible { outline-offset: -1px; z-index: 2; }
.ludus-board .cells .cell .heat { font-size: .7em; font-weight: 400; }
`);

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Board {
  // pick(cell, view): the move that a click on a cell means; round: discs instead of squares
  constructor(root, play, { pick = (cell, view) => view.moves.find((move) => move[1] === cell), round = false } = {}) {
    Object.assign(this, { root, play, pick, round, view: null, cells: [], at: 0 });
    this.grid = element("div", { class: "cells", role: "group", "aria-label": "Board" });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.grid.addEventListener("focusin", (event) => this.focused(this.cells.indexOf(event.target)));
    root.classList.add("ludus-board");
    root.replaceChildren(this.grid);
  }

  update(view, hints) {
    if (!this.view || this.view.cells.length !== view.cells.length) this.build(view);
    this.view = view;
    const heat = this.heat(hints);
    this.cells.forEach((cell, number) => this.draw(cell, number, heat[number]));
  }

  build(view) {
    const [rows, columns] = [view.rows, view.columns];
    const named = rows.some((name) => name);
    this.grid.style.gridTemplateColumns = `${named ? "1.4em " : ""}repeat(${columns.length}, minmax(0, 1fr))`;
    this.root.style.setProperty("--mark", `min(${Math.round(220 / columns.length) / 10}rem, ${Math.round(48 / columns.length)}vw)`);
    this.cells = [];
    const parts = [];
    rows.forEach((name, row) => {
      if (named) parts.push(element("span", { class: "name", "aria-hidden": "true" }, name));
      columns.forEach((_, column) => {
        const number = row * columns.length + column;
        const cell = element("button", { type: "button", class: "cell", tabindex: number ? -1 : 0, "data-cell": number,
          onclick: (event) => this.clicked(number, event) });
        this.cells.push(cell);
        parts.push(cell);
      });
    });
    if (named) parts.push(element("span"));
    parts.push(...columns.map((name) => element("span", { class: "name", "aria-hidden": "true" }, name)));
    this.grid.replaceChildren(...parts);
    this.at = 0;
  }

  name(number) {
    const wide = this.view.columns.length;
    const row = Math.floor(number / wide);
    const [column, label] = [this.view.columns[number % wide], this.view.rows[row]];
    return label ? `${column}${label}` : `column ${column}, row ${this.view.rows.length - row}`;
  }

  // How much of the thinker's policy falls on each cell.
  heat(hints) {
    const heat = new Array(this.view.cells.length).fill(0);
    const moves = new Map(this.view.moves.map((move) => [move[0], move.slice(1)]));
    for (const [action, share] of hints?.heat ?? []) for (const cell of moves.get(action) ?? []) heat[cell] += share;
    return heat;
  }

  draw(cell, number, heat) {
    const owner = this.view.cells[number];
    const move = this.pick(number, this.view);
    const warm = owner < 0 && heat >= SEEN;
    const colour = owner >= 0 ? this.view.colours[owner] : warm ? heatColour(heat) : "";
    cell.className = `cell${this.round ? " round" : ""}${this.view.fresh.includes(number) ? " fresh" : ""}`;
    cell.style.background = colour;
    cell.style.color = colour ? inkOn(colour) : "";
    const said = owner >= 0 ? this.view.marks[owner] : warm ? `${Math.min(99, Math.round(100 * heat))}` : "";
    cell.replaceChildren(...(said ? [element("span", { class: owner >= 0 ? "mark" : "heat" }, said)] : []));
    cell.setAttribute("aria-label", `${this.name(number)}: ${owner >= 0 ? this.view.marks[owner] : "free"}`);
    if (move) cell.removeAttribute("aria-disabled");
    else cell.setAttribute("aria-disabled", "true");
  }

  clicked(number) {
    const move = this.pick(number, this.view);
    if (move) this.play(move[0]);
  }

  // Show a move that was asked for in a list.
  suggest(action) {
    const move = this.view.moves.find((each) => each[0] === action);
    if (move?.length > 1) this.focus(move[1]);
  }

  focus(number) {
    this.cells[number].focus();
  }

  focused(number) {
    if (number < 0) return;
    this.cells[this.at].tabIndex = -1;
    this.cells[number].tabIndex = 0;
    this.at = number;
  }

  key(event) {
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const wide = this.view.columns.length;
    const row = Math.floor(this.at / wide) + step[0];
    const column = (this.at % wide) + step[1];
    if (row >= 0 && row < this.view.rows.length && column >= 0 && column < wide) this.focus(row * wide + column);
  }
}

export default (root, play) => new Board(root, play);
