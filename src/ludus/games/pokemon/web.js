// Pokémon: the battle as text, and a button for each move and switch. Digits choose: 1 to 4 a move, 5 to 9 a
// switch, 0 the gimmick; in a team preview 1 to 6 pick whom to bring.
import { addStyle, element } from "/web/board.js";

addStyle("pokemon", `
.pokemon { max-width: 46rem; margin: 0 auto; }
.pokemon .sides { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .75rem; }
.pokemon .side { border: 1px solid var(--line); border-radius: var(--round); padding: .5rem .6rem; background: var(--raised); min-height: 11.5rem; }
.pokemon .side.turn { border-color: var(--accent); }
.pokemon h3 { font-size: .95rem; line-height: 1.3; font-weight: 600; margin: 0; }
.pokemon p { margin: .15rem 0; }
.pokemon .name { font-weight: 700; font-size: 1.05rem; overflow-wrap: anywhere; }
.pokemon meter { width: 100%; height: .9rem; }
.pokemon .small { font-size: .85rem; color: var(--soft); overflow-wrap: anywhere; }
.pokemon .team { display: flex; flex-wrap: wrap; gap: .15rem .5rem; list-style: none; padding: 0; margin: .3rem 0 0; font-size: .85rem; }
.pokemon .team .out { text-decoration: line-through; color: var(--soft); }
.pokemon .field { min-height: 1.5rem; }
.pokemon .choices { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .4rem; margin: .4rem 0; align-content: start; }
.pokemon .attacks { min-height: 7.6rem; }
.pokemon .switches { min-height: 11.5rem; }
.pokemon .choices button { text-align: left; min-height: 3.5rem; padding: .3rem .5rem; overflow-wrap: anywhere; }
.pokemon .choices b { display: block; }
.pokemon .choices span { font-size: .82rem; color: var(--soft); }
.pokemon .choices kbd { float: right; font: inherit; font-size: .8rem; color: var(--soft); }
.pokemon button[aria-pressed=true], .pokemon button[aria-pressed=true] span, .pokemon button[aria-pressed=true] kbd { background: var(--accent); color: var(--on-accent); }
.pokemon button[hidden] { visibility: hidden; } /* its place stays, so that nothing moves */
.pokemon .best { box-shadow: 0 0 0 3px var(--accent); }
.pokemon .log { height: 13rem; overflow-y: auto; border: 1px solid var(--line); border-radius: var(--round); padding: .3rem .6rem; font-size: .9rem; }
.pokemon .log h3 { margin-top: .4rem; }
.pokemon .log p { margin: 0; white-space: pre-wrap; }
`);

const STATUS = { brn: "burned", par: "paralysed", slp: "asleep", frz: "frozen", psn: "poisoned", tox: "badly poisoned" };
const HELP = "Digits choose: 1 to 4 a move, 5 to 9 a switch, 0 the gimmick of the generation.";
const percent = (share) => `${Math.round(100 * share)} %`;

function standingOf(active) {
  if (!active) return [element("p", { class: "small" }, "Nobody is in the battle yet.")];
  const facts = [active.health, STATUS[active.status] ?? active.status, ...active.boosts].filter(Boolean);
  return [
    element("p", { class: "name" }, `${active.name} L${active.level}`),
    element("meter", { min: 0, max: 1, low: 0.25, high: 0.5, optimum: 1, value: active.hp, "aria-label": `Hit points of ${active.name}` }),
    element("p", {}, facts.join(", ")),
    element("p", { class: "small" }, active.types.join(", ")),
  ];
}

function memberOf(one) {
  const about = [one.types.join(", "), one.item, one.moves.join(", ")].filter(Boolean).join("; ");
  return element("li", { class: one.hp ? "" : "out", title: about }, `${one.name} ${one.hp ? percent(one.hp) : "fainted"}`);
}

function moveFacts(move) {
  const facts = [move.type, move.power ? `power ${move.power}` : move.category];
  if (move.accuracy && move.accuracy < 100) facts.push(`${move.accuracy} %`);
  if (move.pp !== null) facts.push(`${move.pp} of ${move.max_pp} PP`);
  if (move.damage) facts.push(`does about ${percent(move.damage)}`);
  return facts.filter(Boolean).join(", ");
}

class Battle {
  constructor(root, play) {
    Object.assign(this, { root, play, gimmick: false, picked: [], view: null });
    this.sides = element("div", { class: "sides" });
    this.field = element("p", { class: "field small" });
    this.tera = element("button", { type: "button", "aria-pressed": "false", onclick: () => this.turnGimmick(!this.gimmick) });
    this.moves = element("div", { class: "choices attacks", role: "group", "aria-label": "Moves" });
    this.switches = element("div", { class: "choices switches", role: "group", "aria-label": "Switches" });
    this.log = element("div", { class: "log", role: "log", tabindex: 0, "aria-label": "What happened" });
    root.classList.add("pokemon");
    document.addEventListener("keydown", (event) => this.key(event));
  }

  update(view, hints) {
    if (this.view?.number !== view.number || this.view?.game !== view.game) Object.assign(this, { gimmick: false, picked: [] });
    this.view = view;
    this.best = hints?.ideas[0]?.action;
    this.sides.replaceChildren(...view.sides.map((side) => element("section", { class: `side${side.seat === view.turn ? " turn" : ""}` },
      element("h3", {}, view.names[side.seat]), ...standingOf(side.active),
      element("p", { class: "small" }, side.effects.join(", ")),
      element("ul", { class: "team", "aria-label": "Team" }, ...side.team.map(memberOf)))));
    this.field.textContent = view.field.length ? `On the field: ${view.field.join(", ")}` : "";
    this.offer();
    // Only now, so that nothing moves: an empty battle is much smaller.
    if (!this.log.isConnected) this.root.replaceChildren(this.sides, this.field, this.tera, this.moves, this.switches, element("p", { class: "note" }, HELP), this.log);
    this.tell(view.news);
  }

  tell(news) {
    this.log.replaceChildren(...news.flatMap(({ turn, lines }) => [
      ...(turn ? [element("h3", {}, `Turn ${turn}`)] : []), ...lines.map((line) => element("p", {}, line)),
    ]));
    this.log.scrollTop = this.log.scrollHeight;
  }

  // ---- choosing

  of(kind) {
    return this.view.moves.map(([action, choice]) => ({ action, ...choice })).filter((choice) => choice.kind === kind);
  }

  offer() {
    const moves = this.of("move");
    const gimmicks = moves.filter((move) => move.gimmick);
    if (!gimmicks.length) this.gimmick = false;
    this.tera.hidden = !gimmicks.length;
    this.tera.setAttribute("aria-pressed", this.gimmick);
    this.tera.textContent = gimmicks.length ? `0: ${gimmicks[0].gimmick} with the move` : "";
    const shown = moves.filter((move) => Boolean(move.gimmick) === this.gimmick);
    if (this.view.asks === "team") return this.offerTeam();
    this.moves.replaceChildren(...shown.map((move) => this.button(move.action, move.place + 1, move.name, moveFacts(move))));
    this.switches.replaceChildren(...this.of("switch").map((one) =>
      this.button(one.action, one.place + 4, one.name, [one.types.join(", "), one.health, STATUS[one.status]].filter(Boolean).join(", "))));
  }

  // Whom to bring, in order: as soon as enough are picked, that is the answer.
  offerTeam() {
    const answers = this.of("team");
    const own = this.view.sides.find((side) => side.seat === this.view.turn) ?? this.view.sides[0];
    const count = answers[0]?.places.length ?? 0;
    this.switches.replaceChildren();
    this.moves.replaceChildren(...(answers.length ? own.team : []).map((one, place) => {
      const rank = this.picked.indexOf(place + 1);
      const facts = `${one.types.join(", ")}${rank < 0 ? "" : `, picked as number ${rank + 1} of ${count}`}`;
      const made = element("button", { type: "button", "data-key": place + 1, "aria-pressed": String(rank >= 0), onclick: () => this.pick(place + 1, count) },
        element("kbd", { "aria-hidden": "true" }, String(place + 1)), element("b", {}, one.name), element("span", {}, facts));
      return made;
    }));
  }

  pick(place, count) {
    this.picked = this.picked.includes(place) ? this.picked.filter((each) => each !== place) : [...this.picked, place];
    const answer = this.picked.length === count && this.of("team").find(({ places }) => places.every((each, n) => each === this.picked[n]));
    if (answer) return this.choose(answer.action);
    this.offer();
    this.moves.querySelector(`[data-key="${place}"]`)?.focus();
  }

  button(action, key, name, facts) {
    return element("button", { type: "button", "data-action": action, "data-key": key, class: action === this.best ? "best" : "", onclick: () => this.choose(action) },
      element("kbd", { "aria-hidden": "true" }, String(key)), element("b", {}, name), element("span", {}, facts));
  }

  choose(action) {
    if (!this.view.yours || this.sent === `${this.view.game} ${this.view.number}`) return;
    this.sent = `${this.view.game} ${this.view.number}`;  // a second click comes too late
    this.play(action);
  }

  turnGimmick(on) {
    this.gimmick = on;
    this.offer();
  }

  key(event) {
    if (!this.root.isConnected || !this.view?.yours || !/^[0-9]$/.test(event.key)) return;
    if (event.ctrlKey || event.altKey || event.metaKey || event.repeat || event.target.matches?.("input, select, textarea")) return;
    if (event.key === "0") return this.tera.hidden || this.turnGimmick(!this.gimmick);
    this.root.querySelector(`.choices [data-key="${event.key}"]`)?.click();
  }

  suggest(action) {
    const found = this.of("move").find((move) => move.action === action);
    if (found) this.turnGimmick(Boolean(found.gimmick));
    this.root.querySelector(`[data-action="${action}"]`)?.focus();
  }
}

export default (root, play) => new Battle(root, play);
