// The page of one game: board, controls, hints, moves and what a new game can be. The board itself is drawn by
// the game's own module.
export default {
  template: `
<div class="game" :data-turn="turn" :data-number="position?.number">
  <p class="status" role="status" aria-live="polite" :class="{problem: problem}">{{ problem || status || "Getting the game ready ..." }}</p>
  <div class="table">
    <div class="stage"><div ref="board" class="drawing" :class="{shown: mode !== 'play'}" :aria-busy="!position"></div></div>
    <aside v-if="about && drawn">
      <div class="bar" role="group" aria-label="This game">
        <button type="button" v-if="about.page === 'live'" @click="$emit('pause')" :disabled="!position || position.over">{{ paused ? "Go on" : "Pause" }}</button>
        <template v-else-if="mode === 'play'">
          <button type="button" @click="$emit('hint', adviser)" :disabled="!position || position.over || thinking">Hint</button>
          <button type="button" v-if="!about.hidden" @click="$emit('undo')" :disabled="!position || !position.number">Undo</button>
        </template>
        <template v-else-if="mode === 'watch'">
          <button type="button" @click="$emit('pause')">{{ paused ? "Go on" : "Pause" }}</button>
          <button type="button" @click="$emit('step')" :disabled="!paused">Step</button>
          <button type="button" @click="$emit('hint', adviser)" :disabled="!position || position.over || thinking">Thoughts</button>
        </template>
        <template v-else>
          <button type="button" aria-label="First position" @click="go(0)" :disabled="!position?.number">|◀</button>
          <button type="button" aria-label="Previous move" @click="go(position.number - 1)" :disabled="!position?.number">◀</button>
          <button type="button" aria-label="Next move" @click="go(position.number + 1)" :disabled="!position || position.number >= total">▶</button>
          <button type="button" aria-label="Last position" @click="go(total)" :disabled="!position || position.number >= total">▶|</button>
          <label>Move <input type="range" min="0" :max="total" :value="position?.number ?? 0" @change="go(+$event.target.value)" aria-label="Move"></label>
        </template>
        <button type="button" v-if="about.page === 'rules'" @click="copy" :disabled="!position?.text">{{ copied ? "Copied" : "Copy game" }}</button>
        <a class="button" v-if="mode !== 'replay' && position?.over && position.text" :href="'/replay?text=' + encodeURIComponent(position.text)">Replay</a>
      </div>
      <label class="line" v-if="about.page !== 'live'">{{ mode === "replay" ? "Thoughts of" : "Hints by" }}
        <select v-model="adviser" @change="mode === 'replay' && $emit('adviser', adviser)">
          <option v-for="name in advisers" :value="name">{{ name }}</option>
        </select>
      </label>
      <div class="hints" aria-live="polite" v-if="about.page !== 'live'">
        <p v-if="thinking" class="note">Thinking ...</p>
        <p v-else-if="!hints" class="note">{{ position?.over ? "The game is over." : about.page === "table" ? "What an agent would do, the likeliest first." : "What an agent would play: its best moves, and on a board where they are." }}</p>
        <table v-else-if="hints && hints.ideas.length">
          <caption class="soft">{{ hints.by }}<span v-if="hints.values.length">: {{ worth }}</span></caption>
          <thead><tr><th>Move</th><th class="number">Share</th><th class="number">Value</th></tr></thead>
          <tbody>
            <tr v-for="idea in hints.ideas" :class="{played: idea.action === hints.played}">
              <td><button type="button" class="idea" @click="suggest(idea.action)">{{ idea.text }}</button><span v-if="idea.action === hints.played"> played</span></td>
              <td class="number">{{ Math.round(100 * idea.share) }} %</td>
              <td class="number">{{ idea.value === null ? "-" : (idea.value > 0 ? "+" : "") + idea.value.toFixed(2) }}</td>
            </tr>
          </tbody>
        </table>
      </div>
      <form v-if="mode !== 'replay'" class="setup" @submit.prevent="begin">
        <h2>New game</h2>
        <label v-for="(_, seat) in seats" class="line">Seat {{ seat }}{{ about.marks[seat] ? " (" + about.marks[seat] + ")" : "" }}
          <select v-model="seats[seat]"><option v-for="name in players" :value="name">{{ name }}</option></select>
        </label>
        <label class="line" v-if="about.thinking.length">Thinking time <select v-model="think"><option v-for="time in about.thinking" :value="time">{{ time }} a move</option></select></label>
        <label v-for="rule in about.switches" class="line" :title="rule.help">{{ rule.name.replaceAll("_", " ") }}
          <select v-if="rule.choices.length" v-model="rules[rule.name]" @change="describe"><option v-for="choice in rule.choices" :value="choice">{{ choice }}</option></select>
          <input v-else type="number" min="1" max="100" v-model="rules[rule.name]">
        </label>
        <button class="main">New game</button>
      </form>
      <h2 v-if="about.page === 'rules'">Moves</h2>
      <ol class="moves" v-if="about.page === 'rules'" tabindex="0" aria-label="Moves so far" ref="moves"><li v-for="[seat, said] in position?.log ?? []"><b>{{ names[seat] }}</b> {{ said }}</li></ol>
    </aside>
  </div>
  <dialog ref="dialog" aria-label="Showdown"><div ref="explained"></div><form method="dialog"><button class="main" autofocus>Go on</button></form></dialog>
</div>`,
  props: {
    mode: String, script: String, about: Object, position: Object, names: Array, status: String, problem: String,
    hints: Object, thinking: Boolean, paused: Boolean, setup: Object, total: Number,
  },
  emits: ["play", "hold", "hint", "undo", "pause", "step", "go", "adviser", "begin", "describe"],
  data() {
    return { adviser: "", seats: [], think: "", rules: {}, copied: false, drawn: false };
  },
  computed: {
    turn() { return !this.drawn ? "" : this.position.over ? "over" : this.position.yours ? "you" : "others"; },
    agents() { return [...this.about.bots, ...(this.about.champion ? ["champion"] : []), ...this.about.runs.map((run) => "run " + run)]; },
    advisers() { return this.agents.filter((name) => name !== "random"); },
    players() { return this.mode === "play" ? ["you", ...this.agents] : this.agents; },
    worth() { return this.hints.values.map((value, seat) => `${this.names[seat]} ${value > 0 ? "+" : ""}${value.toFixed(2)}`).join(", "); },
  },
  watch: {
    about() { this.fill(); },
    setup() { this.fill(); },
    position() { this.draw(); },
    hints() { this.draw(); },
    script() { this.load(); },
  },
  mounted() {
    this.explainedUntil = null;
    this.fill();
    this.load();
  },
  methods: {
    async load() {
      if (!this.script) return;
      const module = await import(this.script);
      this.board = module.default(this.$refs.board, (action) => this.$emit("play", action, this.position.number),
        (buttons) => this.$emit("hold", buttons));
      this.draw();
    },
    fill() {
      if (!this.about || !this.setup) return;
      this.seats = [...this.setup.seats];
      this.think = this.setup.think;
      this.rules = Object.fromEntries(this.about.switches.map((rule) => [rule.name, rule.value]));
      if (!this.advisers.includes(this.adviser)) this.adviser = this.about.champion ? "champion" : this.about.bots.at(-1);
    },
    draw() {
      if (!this.board || !this.position) return;
      this.board.update({ ...this.position, names: this.names }, this.hints);
      this.drawn = true;
      this.$nextTick(() => { if (this.$refs.moves) this.$refs.moves.scrollTop = this.$refs.moves.scrollHeight; });
      this.explain();
    },
    // What was settled since this page last looked; not what was before it was opened.
    explain() {
      const { game, number, settled } = this.position;
      const before = this.explainedUntil;
      this.explainedUntil = { game, number };
      if (!this.board.explain || before?.game !== game || this.mode !== "play") return;
      const news = settled.filter((hand) => hand.number > before.number).at(-1);
      if (!news) return;
      this.board.explain(this.$refs.explained, news);
      if (!this.$refs.dialog.open) this.$refs.dialog.showModal();
    },
    suggest(action) { this.board?.suggest?.(action); },
    go(number) { this.$emit("go", number); },
    begin() { this.$emit("begin", { seats: this.seats, think: this.think, rules: this.rules }); },
    describe() { this.$emit("describe", this.rules); },
    async copy() {
      await navigator.clipboard.writeText(this.position.text).catch(() => window.prompt("The game as text", this.position.text));
      this.copied = true;
      setTimeout(() => { this.copied = false; }, 1500);
    },
  },
};
