// Curves of one or several runs: zoom, smoothing, log scale and downloads happen here, so that a visitor who
// only looks costs the server nothing but the new points.
import { echarts } from "nicegui-echart";

const MOST_NEW = 2000; // points of a curve that are appended before all are fetched anew, downsampled again

export default {
  props: { runs: Array },
  template: `
    <section class="curves">
      <div class="bar" role="group" aria-label="How curves are drawn">
        <label>Smoothing <input type="range" min="0" max="0.99" step="0.01" v-model.number="smoothing" @input="drawAll">
          <output>{{ smoothing.toFixed(2) }}</output></label>
        <label><input type="checkbox" v-model="log" @change="drawAll"> Log scale</label>
        <label>X axis <select v-model="axis" @change="drawAll"><option>decisions</option><option>hours</option></select></label>
        <label>From <input type="number" class="edge" v-model.lazy="low" @change="zoomTyped({})" min="0" placeholder="decisions"></label>
        <label>to <input type="number" class="edge" v-model.lazy="high" @change="zoomTyped({})" min="0" placeholder="decisions"></label>
        <button type="button" @click="zoomTyped({ low: '', high: '' })" :disabled="!range">Reset zoom</button>
        <a v-for="run in runs" class="button" :href="url(run, 'metrics.csv')" :download="run + '.csv'">CSV{{ runs.length > 1 ? " of " + run : "" }}</a>
      </div>
      <p class="note">Drag over a curve to zoom in. A curve keeps its peaks however far you zoom out.</p>
      <p v-if="problem" class="problem" role="alert">{{ problem }}</p>
      <p v-else-if="!charts.length" class="note" role="status">{{ loaded ? "There are no metrics yet." : "Reading the metrics …" }}</p>
      <ul v-if="runs.length > 1" class="legend" aria-label="Runs"><li v-for="(run, i) in runs">
        <span class="swatch" :style="{background: 'var(--series-' + (i % 8 + 1) + ')'}"></span>
        <a :href="'/run/' + encodeURIComponent(run)">{{ run }}</a></li></ul>
      <template v-for="group in groups" :key="group.title">
        <h2>{{ group.title }}</h2>
        <div class="grid">
          <figure v-for="chart in group.charts" :key="chart.key" class="chart">
            <figcaption><span class="title">{{ chart.title }}</span><span class="latest">{{ latest[chart.key] }}</span>
              <button type="button" class="plain small" :aria-label="'Download ' + chart.title + ' as PNG'" @click="savePng(chart)">PNG</button>
              <button type="button" class="plain small" :aria-label="'Download ' + chart.title + ' as CSV'" @click="saveCsv(chart)">CSV</button>
            </figcaption>
            <div class="canvas" role="img" :aria-label="chart.title + ': ' + (latest[chart.key] || 'no value yet')" :data-chart="chart.key"></div>
          </figure>
        </div>
      </template>
    </section>`,
  data() {
    return { charts: [], latest: {}, loaded: false, problem: "", smoothing: 0, log: false, axis: "decisions",
      range: null, low: "", high: "" };
  },
  created() {
    this.number = ludus.number;
    this.known = {}; // run -> all curves
    this.close = {}; // run -> the part that is zoomed in on
    this.drawn = {}; // chart -> its ECharts instance
    this.zooms = 0;
    for (const run of this.runs) {
      ludus.on("run:" + run, (what) => what.curves && this.grow(run, what.curves));
    }
  },
  async mounted() {
    this.visible = new IntersectionObserver((entries) => entries.forEach((entry) => this.appear(entry)), { rootMargin: "200px" });
    this.sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => this.drawn[target.dataset.chart]?.resize()));
    this.theme = new MutationObserver(() => this.drawAll());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    await Promise.all(this.runs.map((run) => this.fetchAll(run)));
  },
  beforeUnmount() {
    [this.visible, this.sizes, this.theme].forEach((observer) => observer.disconnect());
    Object.values(this.drawn).forEach((drawn) => drawn.dispose());
  },
  computed: {
    groups() {
      const titles = [...new Set(this.charts.map((chart) => chart.group))];
      return titles.map((title) => ({ title, charts: this.charts.filter((chart) => chart.group === title) }));
    },
  },
  methods: {
    url: (run, what) => `/data/${encodeURIComponent(run)}/${what}`,
    async ask(run, what) {
      const answer = await fetch(this.url(run, what)).catch(() => null);
      if (answer?.ok) return answer.json();
      this.problem = answer ? await answer.text() : "The server does not answer.";
      return null;
    },
    async fetchAll(run) {
      const found = await this.ask(run, "curves");
      if (!found) return;
      this.problem = "";
      this.known[run] = found;
      this.loaded = true;
      this.arrange();
    },
    grow(run, news) {
      const known = this.known[run];
      if (!known) return;
      const strange = Object.keys(news.series ?? {}).some((name) => !(name in known.series));
      const long = Object.values(known.series).some(([x]) => x.length > MOST_NEW);
      if (news.from !== known.offset || news.generation !== known.generation || strange || long) {
        if (news.offset !== known.offset) this.fetchAll(run);
        return;
      }
      known.offset = news.offset;
      const add = (to, from) => to.forEach((list, i) => list.push(...from[i]));
      for (const [name, points] of Object.entries(news.series)) add(known.series[name], points);
      const had = known.clock[0].length;
      add(known.clock, news.clock);
      for (const [name, values] of Object.entries(known.means)) {
        values.push(...(news.means[name] ?? news.clock[0].map(() => null)));
        while (values.length < had + news.clock[0].length) values.unshift(null);
      }
      this.drawAll();
    },
    arrange() {
      // Which charts there are; of several runs, one for every metric.
      const found = new Map();
      for (const run of this.runs) {
        for (const chart of this.known[run]?.charts ?? []) {
          const shares = chart.kind !== "line";
          const parts = this.runs.length > 1 && !shares
            ? Object.entries(chart.series).map(([name, label]) => ({ ...chart, series: { [name]: label },
                title: Object.keys(chart.series).length > 1 ? `${chart.title}: ${label}` : chart.title }))
            : this.runs.length > 1 ? [] : [chart];
          for (const part of parts) {
            const key = `${part.group}/${part.title}`;
            if (!found.has(key)) found.set(key, { ...part, key });
            Object.assign(found.get(key).series, part.series);
          }
        }
      }
      const order = ["Score", "Game", "Learning", "Opponents", "Speed", "Where time goes", "Machine", "Other"];
      this.charts = [...found.values()].sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
      this.$nextTick(() => {
        for (const place of this.$el.querySelectorAll(".canvas")) this.visible.observe(place);
        this.drawAll();
      });
    },
    appear({ target, isIntersecting }) {
      const key = target.dataset.chart;
      if (!isIntersecting || this.drawn[key]) return;
      const drawn = echarts.init(target, null, { renderer: "canvas" });
      this.drawn[key] = drawn;
      this.sizes.observe(target);
      drawn.on("datazoom", (event) => this.dragged(drawn, event));
      this.draw(this.charts.find((chart) => chart.key === key));
    },
    drawAll() {
      // Several changes at once are drawn once.
      if (this.waiting) return;
      this.waiting = true;
      requestAnimationFrame(() => {
        this.waiting = false;
        this.charts.forEach((chart) => this.draw(chart));
      });
    },
    source: (known, close, run) => close[run] ?? known[run],
    place(data, x) {
      // From decisions to the x axis.
      if (this.axis === "decisions") return x;
      const [decisions, seconds] = data.clock;
      if (!decisions.length) return 0;
      let low = 0, high = decisions.length - 1;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (decisions[middle] <= x) low = middle;
        else high = middle;
      }
      const span = decisions[high] - decisions[low];
      const share = span > 0 ? (x - decisions[low]) / span : 0;
      return (seconds[low] + share * (seconds[high] - seconds[low])) / 3600;
    },
    lines(chart) {
      // [{label, color, points, errors}] of a chart.
      const found = [];
      this.runs.forEach((run, number) => {
        const data = this.source(this.known, this.close, run);
        if (!data) return;
        if (chart.kind !== "line") return found.push(...this.shares(chart, data));
        Object.entries(chart.series).forEach(([name, label], i) => {
          const [xs, ys] = data.series[name] ?? [[], []];
          const scale = chart.unit === "%" ? 100 : chart.unit === "bytes" ? 1 / 2 ** 30 : 1;
          const points = xs.map((x, k) => [this.place(data, x), ys[k] === null ? null : ys[k] * scale]);
          const errors = chart.error ? data.series[name + chart.error]?.[1] : null;
          const several = this.runs.length > 1;
          found.push({ label: several ? run : label, color: (several ? number : i) % 8, points, error: errors?.at(-1) * scale });
        });
      });
      return found;
    },
    shares(chart, data) {
      const names = Object.keys(chart.series).filter((name) => data.means[name]);
      const xs = data.clock[0];
      const spent = names.map((name) => data.means[name].map((value, k, all) => {
        if (chart.kind === "busy") return value ?? 0;
        return k ? Math.max(0, (value ?? 0) - (all[k - 1] ?? 0)) : value ?? 0;
      }));
      const totals = xs.map((_, k) => spent.reduce((sum, values) => sum + values[k], 0) || 1);
      return names.map((name, i) => ({ label: chart.series[name], color: i % 8, stacked: true,
        points: xs.map((x, k) => [this.place(data, x), (100 * spent[i][k]) / totals[k]]) }));
    },
    smoothed(points) {
      let mean = 0, weight = 0;
      return points.map(([x, y]) => {
        if (y === null) return [x, null];
        mean = this.smoothing * mean + (1 - this.smoothing) * y;
        weight = this.smoothing * weight + (1 - this.smoothing);
        return [x, mean / weight];
      });
    },
    draw(chart) {
      const lines = this.lines(chart);
      const said = lines.filter((line) => line.points.length).map((line) => {
        const error = line.error ? " ± " + this.number(line.error) : "";
        const value = this.number(line.points.at(-1)[1]) + error + this.unit(chart);
        return lines.length > 1 ? `${line.label} ${value}` : value;
      });
      this.latest[chart.key] = said.slice(0, 4).join(", ") + (said.length > 4 ? ", …" : "");
      const drawn = this.drawn[chart.key];
      if (!drawn) return;
      drawn.setOption(this.option(chart, lines), { notMerge: true });
      drawn.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
    },
    unit: (chart) => ({ "%": " %", bytes: " GiB" })[chart.unit] ?? "",
    option(chart, lines) {
      const style = getComputedStyle(document.body);
      const color = (name) => style.getPropertyValue(`--${name}`).trim();
      const text = { color: color("soft"), fontSize: 11 };
      const log = this.log && chart.kind === "line";
      const visible = (points) => (log ? points.map(([x, y]) => [x, y > 0 ? y : null]) : points);
      const series = [];
      for (const line of lines) {
        const paint = color(`series-${line.color + 1}`);
        const plain = { type: "line", name: line.label, showSymbol: line.points.length < 30, symbolSize: 5, animation: false,
          color: paint, sampling: undefined, lineStyle: { width: 1.5 } };
        if (line.stacked) series.push({ ...plain, data: line.points, stack: "all", areaStyle: { opacity: 0.6 }, lineStyle: { width: 0 } });
        else if (this.smoothing) {
          series.push({ ...plain, data: visible(line.points), lineStyle: { width: 1, opacity: 0.3 }, silent: true, tooltip: { show: false } });
          series.push({ ...plain, data: visible(this.smoothed(line.points)), lineStyle: { width: 2 } });
        } else series.push({ ...plain, data: visible(line.points) });
      }
      const format = (value) => (value === null || value === undefined ? "" : this.number(value) + this.unit(chart));
      const edges = this.range ? this.edges() : [null, null];
      const axis = { axisLabel: text, axisLine: { lineStyle: { color: color("border") } }, splitLine: { lineStyle: { color: color("line") } } };
      return {
        animation: false,
        aria: { enabled: false },
        grid: { left: 8, right: 16, top: lines.length > 1 ? 30 : 12, bottom: 4, containLabel: true },
        legend: { show: lines.length > 1, top: 0, type: "scroll", textStyle: { ...text, color: color("ink") }, itemHeight: 8, itemWidth: 16,
          pageTextStyle: text, pageIconColor: color("ink"), pageIconInactiveColor: color("line") },
        tooltip: { trigger: "axis", confine: true, backgroundColor: color("raised"), borderColor: color("border"),
          textStyle: { color: color("ink"), fontSize: 12 }, valueFormatter: format, order: chart.kind === "line" ? "valueDesc" : "seriesAsc" },
        toolbox: { show: true, itemSize: 0, feature: { dataZoom: { yAxisIndex: "none", title: {} } } },
        xAxis: { type: "value", min: edges[0] ?? "dataMin", max: edges[1] ?? "dataMax", ...axis, splitLine: { show: false },
          axisLine: { onZero: false, lineStyle: { color: color("border") } },
          axisLabel: { ...text, hideOverlap: true, alignMaxLabel: "right", formatter: (value) => this.number(value) + (this.axis === "hours" ? " h" : "") } },
        yAxis: { type: log ? "log" : "value", scale: !chart.kind || chart.kind === "line", max: chart.kind === "line" ? null : 100, ...axis,
          axisLabel: { ...text, formatter: format } },
        series,
      };
    },
    edges() {
      if (this.axis === "decisions") return this.range;
      const data = Object.values(this.known)[0];
      return this.range.map((x) => this.place(data, x));
    },
    decisions(value) {
      // From the x axis to decisions.
      if (this.axis === "decisions") return value;
      const [decisions, seconds] = Object.values(this.known)[0].clock;
      const after = seconds.findIndex((second) => second >= value * 3600);
      return after < 0 ? decisions.at(-1) : decisions[after];
    },
    dragged(drawn, event) {
      const part = event.batch?.[0];
      if (part?.startValue === undefined) return;
      [this.low, this.high] = [part.startValue, part.endValue].map((value) => Math.round(this.decisions(value)));
      this.zoom([this.low, this.high]);
    },
    zoomTyped(typed) {
      Object.assign(this, typed);
      if (this.low === "" && this.high === "") return this.zoom(null);
      const last = Math.max(...this.runs.map((run) => this.known[run]?.clock[0].at(-1) ?? 0));
      const range = [Number(this.low || 0), Number(this.high || last)];
      if (range[1] > range[0]) this.zoom(range);
    },
    async zoom(range) {
      const turn = ++this.zooms; // another zoom may come before this one's curves
      this.range = range;
      this.close = {};
      this.drawAll();
      if (!range) return;
      for (const run of this.runs) {
        const part = await this.ask(run, `curves?low=${Math.floor(range[0])}&high=${Math.ceil(range[1])}`);
        if (part && turn === this.zooms) this.close[run] = part;
      }
      this.drawAll();
    },
    save(name, href) {
      const link = Object.assign(document.createElement("a"), { href, download: name });
      link.click();
    },
    savePng(chart) {
      const ground = getComputedStyle(document.body).getPropertyValue("--ground").trim();
      const drawn = this.drawn[chart.key];
      if (drawn) this.save(this.file(chart, "png"), drawn.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: ground }));
    },
    saveCsv(chart) {
      const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
      const rows = this.lines(chart).flatMap((line) => line.points.map(([x, y]) => [quoted(line.label), x, y ?? ""].join(",")));
      const text = [`series,${this.axis},value`, ...rows].join("\n") + "\n";
      const href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
      this.save(this.file(chart, "csv"), href);
      setTimeout(() => URL.revokeObjectURL(href), 1000);
    },
    file(chart, ending) {
      return `${[...this.runs, chart.title].join("-").replace(/[^\w.-]+/g, "_")}.${ending}`;
    },
  },
};
