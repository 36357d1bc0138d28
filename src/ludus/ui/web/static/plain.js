// Draws any game: its position as text, and a button for each move.
import { addStyle, element } from "/web/board.js";

addStyle("plain", `
.ludus-plain pre { overflow-x: auto; min-height: 12rem; padding: .75rem; background: var(--raised); border: 1px solid var(--line); }
.ludus-plain .moves { display: flex; flex-wrap: wrap; gap: .4rem; max-height: 16rem; overflow-y: auto; }
`);

class Plain {
  constructor(root, play) {
    this.play = play;
    this.text = element("pre", { tabindex: 0, "aria-label": "Position" });
    this.moves = element("div", { class: "moves", role: "group", "aria-label": "Moves" });
    root.classList.add("ludus-plain");
    root.replaceChildren(this.text, this.moves);
  }

  update(view) {
    this.text.textContent = view.text;
    this.moves.replaceChildren(
      ...view.moves.map(([action, said]) =>
        element("button", { type: "button", "data-action": action, onclick: () => this.play(action) }, said)),
    );
  }

  suggest(action) {
    this.moves.querySelector(`[data-action="${action}"]`)?.focus();
  }
}

export default (root, play) => new Plain(root, play);
