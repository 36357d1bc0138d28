// OFC: drag or tap cards into rows, take them back, confirm; a showdown explains the points.
import { addStyle, element } from "/web/board.js";

addStyle("ofc", `
.ofc { --card: min(3.1rem, 13vw); max-width: 46rem; margin: 0 auto; }
.ofc .heading { margin: 0 0 .5rem; min-height: 1.4rem; }
.ofc .others { display: flex; flex-wrap: wrap; gap: .75rem; --card: min(2rem, 6vw); min-height: 10.5rem; }
.ofc .others .out { --card: 1.1rem; display: flex; align-items: center; gap: .2rem; margin: .3rem 0 0; }
.ofc .seat { border: 1px solid var(--line); border-radius: var(--round); padding: .5rem; background: var(--raised); }
.ofc .seat.turn { border-color: var(--accent); }
.ofc .seat h3 { font-size: .95rem; line-height: 1.3; font-weight: 600; margin: 0 0 .3rem; }
.ofc .mine { margin-top: .75rem; }
.ofc .row { display: flex; align-items: center; gap: .25rem; width: 100%; text-align: left; margin: .2rem 0; padding: .2rem; min-height: calc(1.4 * var(--card) + .5rem); }
.ofc .row > .name { width: 4.2em; color: var(--soft); font-size: .85rem; flex: none; }
.ofc .row.open { border-style: dashed; border-color: var(--border); }
.ofc .row.over { background: color-mix(in srgb, var(--accent) 25%, var(--ground)); }
.ofc .others .row { border: 0; background: none; min-height: calc(1.4 * var(--card) + .2rem); margin: 0; padding: 0; }
.ofc .others .row > .name { display: none; }
.ofc .card, .ofc-showdown .card { width: var(--card); height: calc(1.4 * var(--card)); flex: none; padding: 0; min-height: 0; border: 1px solid #64748b;
  border-radius: 5px; background: #ffffff; color: #111827; font-weight: 700; font-size: calc(.42 * var(--card)); line-height: 1;
  display: inline-flex; align-items: center; justify-content: center; }
.ofc .card.c, .ofc-showdown .card.c { color: #166534; }
.ofc .card.d, .ofc-showdown .card.d { color: #1d4ed8; }
.ofc .card.h, .ofc-showdown .card.h { color: #b91c1c; }
.ofc .card.joker, .ofc-showdown .card.joker { color: #7e22ce; }
.ofc .card.none { background: none; border-style: dashed; border-color: var(--line); }
.ofc .card.back { background: repeating-linear-gradient(45deg, #475569 0 4px, #64748b 4px 8px); }
.ofc .card.fresh { box-shadow: 0 0 0 3px var(--accent); }
.ofc button.card { touch-action: none; cursor: grab; }
.ofc button.card:hover:not(:disabled) { background: #e2e8f0; }
.ofc button.card[aria-pressed=true] { box-shadow: 0 0 0 4px var(--accent); transform: translateY(-4px); }
.ofc button.card.dragged { position: relative; z-index: 5; cursor: grabbing; pointer-events: none; }
.ofc .hand { display: flex; flex-wrap: wrap; gap: .4rem; min-height: calc(1.4 * var(--card) + 8px); padding-top: 6px; }
.ofc .tools { display: flex; flex-wrap: wrap; gap: .4rem; margin: .5rem 0; }
.ofc-showdown .boards { display: flex; flex-wrap: wrap; gap: 1rem; --card: 1.9rem; }
.ofc-showdown .boards h3 { font-size: 1rem; line-height: 1.3; font-weight: 600; margin: 0; }
.ofc-showdown .boards p { margin: 0 0 .3rem; font-size: .85rem; }
.ofc-showdown .foul { color: var(--bad); }
`);

const RANKS = { T: "10", J: "jack", Q: "queen", K: "king", A: "ace" };
const SUITS = { c: ["♣", "clubs"], d: ["♦", "diamonds"], h: ["♥", "hearts"], s: ["♠", "spades"] };
const LETTERS = "tmb-";
const HELP = "Choose a card, then a row: T, M, B or - (discard) by key. U takes back, Enter on Confirm plays.";

const isJoker = (card) => card.startsWith("X");

function cardName(card) {
  if (!card) return "face down";
  return isJoker(card) ? `joker ${card[1]}` : `${RANKS[card[0]] ?? card[0]} of ${SUITS[card[1]][1]}`;
}

const kindOf = (card) => (!card ? "back" : isJoker(card) ? "joker" : card[1]);
const markOf = (card) => (!card ? "" : isJoker(card) ? `★${card[1]}` : `${card[0] === "T" ? "10" : card[0]}${SUITS[card[1]][0]}`);

function cardOf(card, fresh = false) {
  return element("span", { class: `card ${kindOf(card)}${fresh ? " fresh" : ""}`, role: "img", "aria-label": cardName(card) }, markOf(card));
}

class Ofc {
  constructor(root, play) {
    Object.assign(this, { root, play, view: null, letters: [], order: [], chosen: 0 });
    this.heading = element("p", { class: "heading" });
    this.others = element("div", { class: "others" });
    this.mine = element("section", { class: "mine seat", "aria-label": "Your board" });
    this.hand = element("div", { class: "hand", role: "group", "aria-label": "Your cards" });
    this.back = element("button", { type: "button", onclick: () => this.takeBack() }, "Take back");
    this.confirm = element("button", { type: "button", class: "main", onclick: () => this.send() }, "Confirm");
    root.classList.add("ofc");
    root.replaceChildren(this.heading, this.others, this.mine, this.hand,
      element("div", { class: "tools" }, this.confirm, this.back), element("p", { class: "note" }, HELP));
    root.addEventListener("keydown", (event) => this.key(event));
  }

  update(view) {
    if (!this.view || this.view.number !== view.number) {
      this.letters = view.drawn.map(() => null);
      this.order = [];
      this.chosen = 0;
    }
    this.view = view;
    this.moves = new Map(view.moves.map(([action, letters]) => [letters, action]));
    this.redraw();
    if (this.sent && view.moves.length) {  // whoever plays by keys goes on where the next cards are
      this.sent = false;
      this.hand.querySelector("[aria-pressed=true]")?.focus({ preventScroll: true });
    }
  }

  // ---- placing

  room(letter) {
    const row = LETTERS.indexOf(letter);
    const used = this.letters.filter((each) => each === letter).length;
    const out = this.view.drawn.length === 3 ? 1 : 0;
    if (row === 3) return out - used;
    if (this.letters.filter((each) => each && each !== "-").length >= this.letters.length - out) return 0;
    return this.view.sizes[row] - this.view.boards[this.view.seat].rows[row].length - used;
  }

  put(card, letter) {
    if (!this.moves.size || card < 0 || card >= this.letters.length) return;
    if (this.letters[card] === letter || this.room(letter) <= 0) return;
    this.letters[card] = letter;
    this.order = [...this.order.filter((each) => each !== card), card];
    this.chosen = this.letters.indexOf(null);
    this.redraw();
    (this.confirm.disabled ? this.hand.querySelector("[aria-pressed=true]") ?? this.back : this.confirm).focus({ preventScroll: true });
  }

  takeBack() {
    const card = this.order.pop();
    if (card === undefined) return;
    this.letters[card] = null;
    this.chosen = card;
    this.redraw();
    this.hand.querySelector("[aria-pressed=true]")?.focus();
  }

  // What is played if confirmed now: of three cards, the last one left is the discard.
  whole() {
    const letters = [...this.letters];
    if (letters.length === 3 && letters.filter((each) => each === null).length === 1 && !letters.includes("-")) letters[letters.indexOf(null)] = "-";
    return letters.includes(null) ? null : this.moves.get(letters.join(""));
  }

  send() {
    const action = this.whole();
    if (action === null || action === undefined) return;
    this.sent = true;
    this.play(action);
  }

  suggest(action) {
    const letters = this.view.moves.find((move) => move[0] === action)?.[1];
    if (!letters) return;
    this.letters = [...letters];
    this.order = this.letters.map((_, card) => card);
    this.chosen = -1;
    this.redraw();
    this.confirm.focus();
  }

  key(event) {
    const letter = event.key.toLowerCase();
    if (event.ctrlKey || event.metaKey) return;
    if (LETTERS.includes(letter) && letter) { event.preventDefault(); this.put(this.chosen, letter); }
    else if (letter === "u") { event.preventDefault(); this.takeBack(); }
  }

  // ---- drawing

  redraw() {
    const { view } = this;
    this.heading.textContent = `Hand ${Math.min(view.hand, view.hands)} of ${view.hands}, street ${Math.min(view.street, view.streets)} of ${view.streets}`;
    const seats = view.boards.map((_, ahead) => (view.seat + ahead) % view.boards.length);
    this.others.replaceChildren(...seats.slice(1).map((seat) => this.other(view.boards[seat])));
    this.drawMine(view.boards[view.seat]);
    this.hand.replaceChildren(...view.drawn.map((card, at) => this.held(card, at)).filter((each) => each));
    this.back.disabled = !this.order.length;
    const action = this.whole();
    this.confirm.disabled = action === null || action === undefined;
  }

  title(board) {
    const name = this.view.names?.[board.seat] ?? `seat ${board.seat}`;
    const button = this.view.button === board.seat ? " (button)" : "";
    return `${name}${button}: ${board.points > 0 ? "+" : ""}${Math.round(10 * board.points) / 10}`;
  }

  other(board) {
    const body = board.fantasy
      ? [element("p", {}, `Fantasyland: ${board.fantasy} cards${board.fantasy_hand.length ? "" : ", face down"}`),
        element("div", {}, ...board.fantasy_hand.map((card) => cardOf(card)))]
      : board.rows.map((cards, row) => this.row(board, row));
    const out = board.discards.length ? [element("p", { class: "note out" }, "discarded", ...board.discards.map((card) => cardOf(card)))] : [];
    const turn = this.view.turn === board.seat ? " turn" : "";
    return element("section", { class: `seat${turn}`, "aria-label": `Board of ${this.title(board)}` }, element("h3", {}, this.title(board)), ...body, ...out);
  }

  row(board, row) {
    const cards = board.rows[row].map((card) => cardOf(card, board.fresh.includes(card)));
    const free = Array.from({ length: this.view.sizes[row] - cards.length }, () => element("span", { class: "card none" }));
    return element("div", { class: "row" }, element("span", { class: "name" }, this.view.row_names[row]), ...cards, ...free);
  }

  drawMine(board) {
    const title = element("h3", {}, this.title(board));
    if (board.fantasy) {
      const cards = board.fantasy_hand.map((card) => cardOf(card));
      this.mine.replaceChildren(title, element("p", {}, `Fantasyland with ${board.fantasy} cards: they are set for you at the showdown.`), element("div", {}, ...cards));
      return;
    }
    this.mine.replaceChildren(title, ...[0, 1, 2].map((row) => this.zone(board, row)), this.discards(board));
  }

  zone(board, row) {
    const letter = LETTERS[row];
    const laid = board.rows[row].map((card) => cardOf(card, board.fresh.includes(card)));
    const pending = this.pending(letter);
    const free = Array.from({ length: Math.max(0, this.view.sizes[row] - laid.length - pending.length) }, () => element("span", { class: "card none" }));
    return this.target(letter, this.view.row_names[row], [...laid, ...pending, ...free]);
  }

  discards(board) {
    return this.target("-", "discard", [...board.discards.map((card) => cardOf(card)), ...this.pending("-")]);
  }

  pending(letter) {
    return this.view.drawn.flatMap((card, at) => (this.letters[at] === letter ? [cardOf(card, true)] : []));
  }

  target(letter, name, cards) {
    const open = this.moves.size > 0 && this.room(letter) > 0;
    const said = `${name}: ${cards.map((card) => card.getAttribute("aria-label")).filter((each) => each).join(", ") || "empty"}`;
    return element("button", { type: "button", class: `row${open ? " open" : ""}`, "data-row": letter, "aria-label": said,
      "aria-disabled": open ? false : "true", onclick: () => open && this.put(this.chosen, letter) },
      element("span", { class: "name" }, name), ...cards);
  }

  held(card, at) {
    if (this.letters[at] !== null) return null;
    const made = element("button", { type: "button", class: `card ${kindOf(card)}`, "aria-label": cardName(card), "data-card": card,
      "aria-pressed": at === this.chosen ? "true" : "false", onclick: () => this.choose(at) }, markOf(card));
    made.addEventListener("pointerdown", (event) => this.drag(event, made, at));
    return made;
  }

  choose(at) {
    if (this.dragged) return;
    this.chosen = at;
    this.redraw();
    this.hand.querySelector("[aria-pressed=true]")?.focus();
  }

  drag(start, card, at) {
    if (!this.moves.size || start.button) return;
    this.dragged = false;
    const under = (event) => document.elementFromPoint(event.clientX, event.clientY)?.closest("[data-row]");
    let over = null;
    const move = (event) => {
      const [right, down] = [event.clientX - start.clientX, event.clientY - start.clientY];
      if (!this.dragged && Math.hypot(right, down) < 8) return;
      this.dragged = true;
      card.classList.add("dragged");
      card.style.transform = `translate(${right}px, ${down}px)`;
      over?.classList.remove("over");
      over = under(event);
      over?.classList.add("over");
    };
    const end = (event) => {
      window.removeEventListener("pointermove", move);
      window.removeEventListener("pointerup", end);
      window.removeEventListener("pointercancel", end);
      if (!this.dragged) return;
      const row = event.type === "pointerup" ? under(event)?.dataset.row : null;
      setTimeout(() => { this.dragged = false; });
      this.chosen = at;
      if (row && this.room(row) > 0) this.put(at, row);
      else this.redraw();
    };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", end);
    window.addEventListener("pointercancel", end);
  }

  // ---- showdown

  explain(box, hand) {
    const who = (each, seat) => (each.name === "you" ? "you" : `${each.name}, ${(this.view.names?.[seat] ?? "").replace(/ \(seat.*/, "")}`);
    const board = (each, seat) => element("div", {},
      element("h3", {}, `${who(each, seat)}${each.fantasy ? " (Fantasyland)" : ""}${each.foul ? " fouls" : ""}`),
      ...each.rows.flatMap((row) => [element("div", {}, ...row.cards.map((card) => cardOf(card))), element("p", { class: each.foul ? "foul" : "soft" }, row.name)]));
    box.classList.add("ofc-showdown");
    box.replaceChildren(element("h2", {}, hand.title), element("div", { class: "boards" }, ...hand.boards.map(board)),
      ...hand.lines.map((line) => element("p", {}, line)));
  }
}

export default (root, play) => new Ofc(root, play);
