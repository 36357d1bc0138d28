// Console games: the newest picture of the emulator, and its buttons, by keys and on the screen.
import { addStyle, element } from "/web/board.js";

addStyle("retro", `
.retro { max-width: 40rem; margin: 0 auto; }
.retro img { display: block; width: 100%; aspect-ratio: 256 / 240; object-fit: contain; image-rendering: pixelated; background: #000000; border-radius: var(--round); }
.retro .facts { min-height: 1.5rem; margin: .3rem 0; font-variant-numeric: tabular-nums; }
.retro .pad { display: flex; justify-content: space-between; align-items: center; gap: .75rem; min-height: 10.5rem; touch-action: none; user-select: none; -webkit-user-select: none; }
.retro .cross { display: grid; grid-template: repeat(3, 3.2rem) / repeat(3, 3.2rem); gap: .2rem; }
.retro .others { display: flex; flex-wrap: wrap; justify-content: flex-end; gap: .5rem; max-width: 16rem; }
.retro .pad button { min-width: 3.2rem; min-height: 3.2rem; padding: .2rem .5rem; touch-action: none; }
.retro .pad button[aria-pressed=true] { background: var(--accent); color: var(--on-accent); }
.retro .pad small { display: block; }
`);

const CROSS = { UP: ["1 / 2", "▲", "ArrowUp"], LEFT: ["2 / 1", "◀", "ArrowLeft"], RIGHT: ["2 / 3", "▶", "ArrowRight"], DOWN: ["3 / 2", "▼", "ArrowDown"] };
const NAMED = { START: "Enter", SELECT: "Shift", MODE: "Shift" };
const LETTERS = ["x", "z", "c", "s", "a", "d", "q", "w", "e"]; // for all other buttons, in their order
const HELP = "Arrow keys steer; the other keys stand on the buttons.";
const RETRY_MS = 1000;

// Button -> key. A and B come first, under the fingers.
function keysOf(buttons) {
  const letters = [...LETTERS];
  const sorted = buttons.filter((name) => !(name in CROSS) && !(name in NAMED)).sort();
  return new Map(buttons.map((name) => [name, CROSS[name]?.[2] ?? NAMED[name]])
    .filter(([, key]) => key).concat(sorted.map((name) => [name, letters.shift()])));
}

class Console {
  constructor(root, hold) {
    Object.assign(this, { root, hold, view: null, held: new Set(), keys: new Map(), pull: 0 });
    this.screen = element("img", { alt: "The console's screen", src: "data:image/gif;base64,R0lGODlhAQABAAAAACw=" });
    this.facts = element("p", { class: "facts" });
    this.pad = element("div", { class: "pad", role: "group", "aria-label": "Buttons of the console" });
    this.help = element("p", { class: "note", hidden: "" }, HELP);
    root.classList.add("retro");
    root.replaceChildren(this.screen, this.facts, this.pad, this.help);
    document.addEventListener("keydown", (event) => this.key(event, true));
    document.addEventListener("keyup", (event) => this.key(event, false));
    window.addEventListener("blur", () => this.letGo());
  }

  update(view) {
    const before = this.view;
    this.view = view;
    this.facts.textContent = Object.entries(view.facts).map(([name, value]) => `${name} ${value}`).join(", ");
    if (before?.game !== view.game) this.watch(view.game);
    if (before?.buttons.join() !== view.buttons.join()) this.lay(view.buttons);
  }

  // ---- pictures: one request at a time, so that a slow connection skips some instead of falling behind

  async watch(game) {
    const mine = ++this.pull;
    let number = 0;
    while (mine === this.pull && this.root.isConnected) {
      const answer = await fetch(`/data/games/${game}/picture?after=${number}`, { cache: "no-store" }).catch(() => null);
      if (answer?.status === 200) {
        number = Number(answer.headers.get("x-picture"));
        const picture = await answer.blob().catch(() => null);
        if (picture && mine === this.pull) await this.draw(picture, number);
      } else if (answer?.status !== 204) await new Promise((done) => setTimeout(done, RETRY_MS));
    }
  }

  async draw(picture, number) {
    const url = URL.createObjectURL(picture);
    this.screen.src = url;
    await this.screen.decode().catch(() => {});
    URL.revokeObjectURL(url);
    this.screen.dataset.number = number;
  }

  // ---- buttons

  lay(buttons) {
    this.keys = keysOf(buttons);
    const cross = element("div", { class: "cross" });
    const others = element("div", { class: "others" });
    for (const name of buttons) {
      const place = CROSS[name]?.[0];
      const key = this.keys.get(name);
      const made = element("button", { type: "button", "data-button": name, "aria-pressed": "false", "aria-label": `${name}, key ${key}`, style: place ? `grid-area: ${place}` : "" },
        CROSS[name]?.[1] ?? name, ...(place ? [] : [element("small", {}, key === "Enter" || key === "Shift" ? key : key.toUpperCase())]));
      this.listen(made, name);
      (place ? cross : others).append(made);
    }
    this.pad.replaceChildren(...(buttons.length ? [cross, others] : []));
    this.help.hidden = !buttons.length;
    this.letGo();
  }

  listen(button, name) {
    button.addEventListener("pointerdown", (event) => {
      button.setPointerCapture(event.pointerId);
      this.press(name, true);
    });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(end, () => this.press(name, false));
    button.addEventListener("contextmenu", (event) => event.preventDefault());
    button.addEventListener("keydown", (event) => { if ([" ", "Enter"].includes(event.key) && !event.repeat) this.press(name, true); });
    button.addEventListener("keyup", (event) => { if ([" ", "Enter"].includes(event.key)) this.press(name, false); });
  }

  key(event, down) {
    if (!this.root.isConnected || !this.view?.yours || event.ctrlKey || event.altKey || event.metaKey) return;
    const typing = event.target.matches?.("input, select, textarea, button, a, summary");
    if (typing && (event.key.length > 1 && !event.key.startsWith("Arrow") || event.target.matches("input, select, textarea"))) return;
    const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    for (const [name, key] of this.keys) {
      if (key !== pressed) continue;
      event.preventDefault();
      if (!event.repeat) this.press(name, down);
    }
  }

  press(name, down) {
    if (this.held.has(name) === down) return;
    this.held[down ? "add" : "delete"](name);
    this.pad.querySelector(`[data-button="${name}"]`)?.setAttribute("aria-pressed", down);
    this.hold([...this.held]);
  }

  letGo() {
    for (const name of [...this.held]) this.press(name, false);
  }
}

export default (root, play, hold) => new Console(root, hold);
