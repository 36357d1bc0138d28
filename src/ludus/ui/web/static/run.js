// One run: its facts, and in tabs its curves (the slot), opponents, events, configuration and checkpoints.
export default {
  props: { name: String, initial: Object, config: Array, budget: Number, link: Object },
  template: `
    <div>
      <p v-if="gone" class="panel problem" role="alert">This run was deleted or moved while you watched it.
        What you see is what it last told. <a href="/">All runs</a></p>
      <p v-else-if="problem" class="panel problem" role="alert">{{ problem }}</p>
      <dl class="facts" v-if="facts">
        <div><dt>State</dt><dd><span class="state" :class="'is-' + state.replace(' ', '-')" role="status">{{ state }}</span>
          <span v-if="facts.heard_s !== null" class="heard" :class="{late: late(facts.heard_s)}">last heard {{ facts.heard_s }} s ago</span></dd></div>
        <div><dt>Game</dt><dd>{{ facts.game }} ({{ facts.algo }})</dd></div>
        <div><dt>Decisions</dt><dd class="decisions">{{ whole(facts.decisions) }} of {{ whole(facts.budget) }}</dd></div>
        <div><dt>Games</dt><dd>{{ whole(facts.games) }}</dd></div>
        <div><dt>Speed</dt><dd>{{ number(facts.speed ?? facts.overall) }} decisions/s{{ facts.speed ? "" : " overall" }}</dd></div>
        <div><dt>Time</dt><dd>{{ clock(facts.seconds) }}{{ facts.left === null ? "" : ", " + clock(facts.left) + " left" }}</dd></div>
        <div><dt>Best</dt><dd>{{ facts.best ? number(facts.best.measure) + " " + facts.best.name + " at " + whole(facts.best.decisions) : "none yet" }}</dd></div>
      </dl>
      <p v-if="link" class="play"><a v-if="link.href" :href="link.href">{{ link.text }}</a><span v-else class="note">{{ link.text }}</span></p>
      <progress v-if="facts" class="whole" :value="facts.share" max="1" aria-label="Progress"></progress>
      <div class="tabs" role="tablist" aria-label="About this run" @keydown="step">
        <button v-for="tab in tabs" type="button" role="tab" :id="'tab-' + tab.key" :aria-controls="'panel-' + tab.key"
          :aria-selected="shown === tab.key" :tabindex="shown === tab.key ? 0 : -1" @click="shown = tab.key">{{ tab.title }}</button>
      </div>
      <div v-show="shown === 'curves'" role="tabpanel" id="panel-curves" aria-labelledby="tab-curves"><slot></slot></div>
      <div v-show="shown === 'opponents'" role="tabpanel" id="panel-opponents" aria-labelledby="tab-opponents" class="scroll">
        <p v-if="!opponents.length" class="note">Nobody but itself has played this agent yet.</p>
        <table v-else><thead><tr><th scope="col">Opponent</th><th scope="col" class="number">Share of seats</th>
          <th scope="col" class="number">Rating</th><th scope="col" class="number">Score against it</th>
          <th scope="col" class="number">Games won</th><th scope="col" class="number">Games</th></tr></thead>
          <tbody><tr v-for="one in opponents" :key="one.name"><td>{{ one.name }}</td>
            <td class="number">{{ percent(one.seated) }}</td><td class="number">{{ number(one.rating) }}</td>
            <td class="number">{{ number(one.score) }}{{ one.score_ci ? " ± " + number(one.score_ci) : "" }}</td>
            <td class="number">{{ percent(one.win) }}</td><td class="number">{{ whole(one.games) }}</td></tr></tbody></table>
      </div>
      <div v-show="shown === 'events'" role="tabpanel" id="panel-events" aria-labelledby="tab-events" class="scroll">
        <table><thead><tr><th scope="col">Time</th><th scope="col">Event</th><th scope="col">Details</th></tr></thead>
          <tbody><tr v-for="(one, place) in events" :key="events.length - place">
            <td class="when">{{ when(one.time) }}</td><td>{{ one.event }}</td><td class="details">{{ one.details }}</td></tr></tbody></table>
      </div>
      <div v-show="shown === 'config'" role="tabpanel" id="panel-config" aria-labelledby="tab-config">
        <div class="groups"><section v-for="group in config" :key="group.title"><h2>{{ group.title }}</h2>
          <table><tbody><tr v-for="row in group.rows" :key="row[0]"><th scope="row">{{ row[0] }}</th><td>{{ row[1] }}</td></tr></tbody></table>
        </section></div>
      </div>
      <div v-show="shown === 'checkpoints'" role="tabpanel" id="panel-checkpoints" aria-labelledby="tab-checkpoints">
        <p v-if="!places.length" class="note">There is no checkpoint yet.</p>
        <table v-else><thead><tr><th scope="col" class="number">Decisions</th><th scope="col">What</th></tr></thead>
          <tbody><tr v-for="place in places" :key="place.what + place.decisions"><td class="number">{{ whole(place.decisions) }}</td>
            <td>{{ place.what }}</td></tr></tbody></table>
      </div>
    </div>`,
  data() {
    return { facts: null, events: [], problem: "", gone: false, shown: "curves", ...this.initial };
  },
  created() {
    this.tabs = [
      { key: "curves", title: "Curves" }, { key: "opponents", title: "Opponents and ratings" },
      { key: "events", title: "Events" }, { key: "config", title: "Configuration" },
      { key: "checkpoints", title: "Checkpoints" },
    ];
    this.number = ludus.number;
    this.clock = ludus.clock;
    this.late = ludus.late;
    ludus.on("run:" + this.name, (what) => {
      if (what.facts) Object.assign(this, { facts: what.facts, problem: "", gone: false });
      if (what.events) this.events = what.events;
      if (what.problem) this.problem = what.problem;
      if (what.gone) this.gone = true;
    });
  },
  computed: {
    state() {
      return this.gone ? "deleted" : this.facts.state;
    },
    opponents() {
      return this.facts?.opponents ?? [];
    },
    places() {
      if (!this.facts) return [];
      const named = (list, what) => list.map((decisions) => ({ decisions, what }));
      const found = [
        ...named(this.facts.checkpoints, "checkpoint: the run can go on from here"),
        ...named(this.facts.milestones, "milestone: weights that are kept for good"),
        ...(this.facts.best ? named([this.facts.best.decisions], "best weights") : []),
      ];
      return found.sort((a, b) => b.decisions - a.decisions);
    },
  },
  methods: {
    whole: (value) => (value === null || value === undefined ? "" : Math.round(value).toLocaleString("en")),
    percent: (value) => (value === null || value === undefined ? "" : (100 * value).toFixed(1) + " %"),
    when: (time) => (time ? new Date(1000 * time).toLocaleString() : ""),
    step(event) {
      const moves = { ArrowRight: 1, ArrowLeft: -1 };
      if (!(event.key in moves)) return;
      const keys = this.tabs.map((tab) => tab.key);
      this.shown = keys[(keys.indexOf(this.shown) + moves[event.key] + keys.length) % keys.length];
      this.$nextTick(() => document.getElementById("tab-" + this.shown).focus());
    },
  },
};
