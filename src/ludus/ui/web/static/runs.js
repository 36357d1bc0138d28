// The list of runs: sorted, filtered and chosen here, told by the server.
export default {
  props: { initial: Array, folder: String },
  template: `
    <div>
      <div class="bar">
        <label>Filter <input type="search" v-model="filter" placeholder="name, game or state"></label>
        <a class="button" :href="compareLink" :aria-disabled="chosen.length < 2"
           @click="chosen.length < 2 && $event.preventDefault()">Compare {{ chosen.length || "" }} chosen</a>
        <span class="note" role="status">{{ shown.length }} of {{ runs.length }} runs</span>
      </div>
      <p v-if="!runs.length" class="panel">There is no run in {{ folder }} yet. Train one:
        <code>ludus train GAME --preset quick</code></p>
      <div v-else class="scroll">
        <table class="runs">
          <thead><tr>
            <th scope="col"><span class="hidden">Choose</span></th>
            <th v-for="column in columns" scope="col" :class="{number: column.number}"
                :aria-sort="sort === column.key ? (down ? 'descending' : 'ascending') : null">
              <button v-if="column.key" type="button" class="head" @click="sortBy(column.key)">{{ column.title }}
                <span aria-hidden="true">{{ sort === column.key ? (down ? "▾" : "▴") : "" }}</span></button>
              <template v-else>{{ column.title }}</template>
            </th>
          </tr></thead>
          <tbody>
            <tr v-for="run in shown" :key="run.name" :data-run="run.name">
              <td><input type="checkbox" :value="run.name" v-model="chosen" :aria-label="'Choose ' + run.name"
                   :disabled="chosen.length >= 8 && !chosen.includes(run.name)"></td>
              <td class="name"><a :href="'/run/' + encodeURIComponent(run.name)">{{ run.name }}</a></td>
              <td>{{ run.game }}</td>
              <td><span class="state" :class="'is-' + run.state.replace(' ', '-')">{{ run.state }}</span>
                <span v-if="run.heard_s !== null" class="heard" :class="{late: late(run.heard_s)}">last heard {{ run.heard_s }} s ago</span></td>
              <td class="number"><progress :value="run.share" max="1" :aria-label="'Progress of ' + run.name"></progress>
                <span class="percent">{{ Math.floor(100 * run.share) }} %</span></td>
              <td class="number">{{ run.decisions.toLocaleString("en") }}</td>
              <td class="number">{{ run.speed ? number(run.speed) + "/s" : "" }}</td>
              <td class="number">{{ clock(run.seconds) }}</td>
              <td>{{ run.best }}</td>
              <td><svg v-if="run.spark.length > 1" class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img"
                   :aria-label="'Measure from ' + number(run.spark[0]) + ' to ' + number(run.spark.at(-1))">
                <polyline :points="line(run.spark)"></polyline></svg></td>
            </tr>
            <tr v-for="run in shown.filter((run) => run.problem)" :key="run.name + ' problem'">
              <td></td><td colspan="9" class="problem">{{ run.problem }}</td></tr>
          </tbody>
        </table>
      </div>
    </div>`,
  data() {
    return { runs: this.initial, filter: "", chosen: [], sort: "", down: false };
  },
  created() {
    this.columns = [
      { key: "name", title: "Run" }, { key: "game", title: "Game" }, { key: "state", title: "State" },
      { key: "share", title: "Progress", number: true }, { key: "decisions", title: "Decisions", number: true },
      { key: "speed", title: "Speed", number: true }, { key: "seconds", title: "Time", number: true },
      { key: "", title: "Best" }, { key: "", title: "Measure" },
    ];
    this.number = ludus.number;
    this.clock = ludus.clock;
    this.late = ludus.late;
    ludus.on("list", (what) => {
      this.runs = what.runs;
      this.chosen = this.chosen.filter((name) => this.runs.some((run) => run.name === name));
    });
  },
  computed: {
    shown() {
      const word = this.filter.trim().toLowerCase();
      const fits = (run) => `${run.name} ${run.game} ${run.state}`.toLowerCase().includes(word);
      const found = this.runs.filter(fits);
      if (!this.sort) return found;
      const order = (a, b) => (a[this.sort] < b[this.sort] ? -1 : a[this.sort] > b[this.sort] ? 1 : 0);
      return found.sort((a, b) => (this.down ? -order(a, b) : order(a, b)));
    },
    compareLink() {
      return "/compare?" + this.chosen.map((name) => "run=" + encodeURIComponent(name)).join("&");
    },
  },
  methods: {
    sortBy(key) {
      this.down = this.sort === key ? !this.down : false;
      this.sort = key;
    },
    line(values) {
      const low = Math.min(...values), spread = Math.max(...values) - low || 1;
      const place = (value, i) => `${(100 * i) / (values.length - 1)},${22 - (20 * (value - low)) / spread}`;
      return values.map(place).join(" ");
    },
  },
};
