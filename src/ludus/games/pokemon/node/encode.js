'use strict';
/**
 * Encoder: what a seat knows (tracker and request) as numbers, as layout.json names them.
 *
 * The own team comes first, in the request's order, so that a switch's action names a row; then the
 * opponent's, the active one first. Everything is written straight into the answer's memory.
 */

const { boostFactor, damage, multiplier } = require('./damage');
const { eachLegal, hasFainted, gimmick } = require('./actions');
const { STATS } = require('./seen');
const layout = require('./layout.json');

const ROWS = 12;
const TEAM = 6;
const IDS = layout.ids.length;
const MOVE_START = layout.pokemon.length;
const MOVE_NUMBERS = layout.move.length;
const NUMBERS = MOVE_START + layout.moves * MOVE_NUMBERS;
const FIELD = layout.field.length + 2 * layout.side.length;
const HEAD_BYTES = 8; // row int32, side uint8, whether it is a battle's last uint8, 2 empty
const IDS_BYTES = 2 * ROWS * IDS;
const OBS_BYTES = IDS_BYTES + 4 * (ROWS * NUMBERS + FIELD);

const at = names => Object.fromEntries(names.map((name, i) => [name, i]));
const ID = at(layout.ids);
const N = at(layout.pokemon);
const M = at(layout.move);
const S = at(layout.side);
const F = at(layout.field);

/** Volatile -> where it is among a Pokémon's numbers. */
const VOLATILES = new Map([
  'substitute', 'confusion', 'leechseed', 'taunt', 'encore', 'disable', 'yawn', 'attract', 'protect',
  'mustrecharge', 'charging', 'dynamax', 'transformed',
].map(name => [name, N[name]]));
const WEATHERS = {
  sunnyday: 'sun', desolateland: 'sun', raindance: 'rain', primordialsea: 'rain', sandstorm: 'sand',
  hail: 'snow', snow: 'snow', snowscape: 'snow', deltastream: 'strong_winds',
};
const TERRAINS = ['electricterrain', 'grassyterrain', 'mistyterrain', 'psychicterrain'];
const MOST_LAYERS = { spikes: 3, toxicspikes: 2 };
const STAT_SCALE = 400;
const LONG_TURNS = 8; // what counts as long for anything that lasts a few turns

class Encoder {
  /** previews: the answers to a team preview in this format */
  constructor(previews) {
    this.previews = previews;
    this.actions = 14 + previews.length;
    this.recordBytes = HEAD_BYTES + OBS_BYTES + 4 * Math.ceil(this.actions / 4);
    this.count = 0;
    this.reserve(64);
  }

  reserve(records) {
    const before = this.buffer;
    this.buffer = Buffer.from(new ArrayBuffer(records * this.recordBytes));
    if (before) before.copy(this.buffer);
    this.shorts = new Int16Array(this.buffer.buffer);
    this.longs = new Int32Array(this.buffer.buffer);
    this.floats = new Float32Array(this.buffer.buffer);
    this.capacity = records;
  }

  /** Adds a decision. refused: actions that the simulator has taken back. Returns how many are legal. */
  add(row, side, last, tracker, request, refused) {
    if (this.count === this.capacity) this.reserve(2 * this.capacity);
    const start = this.count++ * this.recordBytes;
    this.buffer.fill(0, start, start + this.recordBytes);
    this.longs[start / 4] = row;
    this.buffer[start + 4] = side;
    this.buffer[start + 5] = last ? 1 : 0;
    this.observe(start + HEAD_BYTES, tracker, request);
    let legal = 0;
    const mask = start + HEAD_BYTES + OBS_BYTES;
    eachLegal(request, this.previews, action => {
      if (refused?.has(action)) return;
      this.buffer[mask + action] = 1;
      legal++;
    });
    return legal;
  }

  /** Forget the decision that was added last. */
  drop() {
    this.count--;
  }

  /** All decisions since the last call, as bytes that are good until the next. */
  take() {
    const records = this.buffer.subarray(0, this.count * this.recordBytes);
    this.count = 0;
    return records;
  }

  observe(start, tracker, request) {
    const { own, opponent, conditions } = tracker;
    const ids = start / 2;
    const numbers = (start + IDS_BYTES) / 4;
    const mine = tracker.ownViews(request);
    const theirs = tracker.opponentViews();
    const ourActive = mine[0]?.active && mine[0].hp ? mine[0] : null;
    const theirActive = theirs[0]?.active && theirs[0].hp ? theirs[0] : null;
    const weather = tracker.weather.id;
    for (let i = 0; i < mine.length; i++) {
      this.pokemon(ids, numbers, i, mine[i], theirActive, weather, conditions[opponent], 1);
    }
    for (let i = 0; i < theirs.length; i++) {
      this.pokemon(ids, numbers, TEAM + i, theirs[i], ourActive, weather, conditions[own], 0);
    }
    this.field(numbers + ROWS * NUMBERS, tracker, request);
  }

  /** rival: the opponent's active Pokémon, or null; conditions: of its side */
  pokemon(ids, numbers, row, view, rival, weather, conditions, own) {
    this.ids(ids + row * IDS, view);
    const f = this.floats;
    const n = numbers + row * NUMBERS;
    f[n + N.known] = 1;
    f[n + N.own] = own;
    f[n + N.active] = view.active ? 1 : 0;
    f[n + N.fainted] = view.status === 'fnt' ? 1 : 0;
    f[n + N.hp] = view.hp;
    f[n + N.level] = view.level / 100;
    f[n + N.terastallized] = view.tera ? 1 : 0;
    const { stats, moves } = view;
    f[n + N.stat_hp] = stats.hp / STAT_SCALE;
    f[n + N.stat_atk] = stats.atk / STAT_SCALE;
    f[n + N.stat_def] = stats.def / STAT_SCALE;
    f[n + N.stat_spa] = stats.spa / STAT_SCALE;
    f[n + N.stat_spd] = stats.spd / STAT_SCALE;
    f[n + N.stat_spe] = stats.spe / STAT_SCALE;
    if (view.active) this.onField(n, view);
    if (rival) this.matchup(n, view, rival);
    for (let i = 0; i < moves.length; i++) {
      this.move(n + MOVE_START + i * MOVE_NUMBERS, moves[i], view, rival, weather, conditions);
    }
  }

  /** What a Pokémon has only while it is on the field. */
  onField(n, view) {
    const f = this.floats;
    let place = n + N.boost_atk;
    for (const stat of STATS) f[place++] = view.boosts[stat] / 6;
    f[n + N.asleep_turns] = view.asleepTurns / 3;
    f[n + N.toxic_turns] = Math.min(view.toxicTurns, LONG_TURNS) / LONG_TURNS;
    f[n + N.active_turns] = Math.min(view.activeTurns, LONG_TURNS) / LONG_TURNS;
    f[n + N.perish] = (view.volatiles.perish ?? 0) / 4;
    for (const name in view.volatiles) {
      const at = VOLATILES.get(name);
      if (at !== undefined && view.volatiles[name]) f[n + at] = 1;
    }
  }

  ids(place, view) {
    const ids = this.shorts;
    const { types, words, moves } = view;
    ids[place + ID.species] = view.speciesNumber;
    ids[place + ID.ability] = words.ability.of(view.ability);
    ids[place + ID.item] = words.item.of(view.item);
    ids[place + ID.type_1] = words.type_1.of(types[0] ?? '');
    ids[place + ID.type_2] = words.type_2.of(types.length > 1 ? types[1] : '');
    ids[place + ID.tera_type] = words.tera_type.of(view.teraType);
    ids[place + ID.status] = words.status.of(view.status);
    for (let i = 0; i < moves.length; i++) ids[place + ID.move_1 + i] = moves[i].number;
    ids[place + ID.last_move] = words.last_move.of(view.lastMove);
  }

  /** How the types of two Pokémon meet, and which of them is faster. */
  matchup(n, view, rival) {
    this.floats[n + N.threat] = worst(rival.types, view.defences) / 2;
    this.floats[n + N.pressure] = worst(view.types, rival.defences) / 2;
    this.floats[n + N.faster] = speed(view) > speed(rival) ? 1 : 0;
  }

  move(m, entry, user, rival, weather, conditions) {
    const { move } = entry;
    const f = this.floats;
    f[m + M.usable] = entry.usable;
    f[m + M.power] = move.basePower / 100;
    f[m + M.accuracy] = move.accuracy === true ? 1 : move.accuracy / 100;
    f[m + M.pp] = entry.pp;
    f[m + M.physical] = move.category === 'Physical' ? 1 : 0;
    f[m + M.special] = move.category === 'Special' ? 1 : 0;
    f[m + M.priority] = move.priority / 5;
    if (!rival || move.category === 'Status') return;
    const factor = multiplier(move, user, rival);
    f[m + M.effectiveness] = factor / 2;
    f[m + M.damage] = Math.min(2, damage(move, user, rival, weather, conditions, factor));
  }

  field(place, tracker, request) {
    const f = this.floats;
    const { own, opponent, turn, weather } = tracker;
    const active = request.active?.[0];
    const lasts = since => Math.min(turn - since, LONG_TURNS) / LONG_TURNS;
    f[place + F.turn] = Math.min(turn, 200) / 100;
    f[place + F.choose_move] = active ? 1 : 0;
    f[place + F.forced_switch] = request.forceSwitch ? 1 : 0;
    f[place + F.revival] = request.forceSwitch && request.side.pokemon[0].reviving ? 1 : 0;
    f[place + F.team_preview] = request.teamPreview ? 1 : 0;
    f[place + F.trapped] = active?.trapped ? 1 : 0;
    f[place + F.maybe_trapped] = active?.maybeTrapped ? 1 : 0;
    if (WEATHERS[weather.id]) {
      f[place + F[WEATHERS[weather.id]]] = 1;
      f[place + F.weather_turns] = lasts(weather.since);
    }
    for (const terrain of TERRAINS) {
      if (tracker.field[terrain] === undefined) continue;
      f[place + F[terrain]] = 1;
      f[place + F.terrain_turns] = lasts(tracker.field[terrain]);
    }
    for (const room of ['trickroom', 'gravity', 'magicroom', 'wonderroom']) {
      if (tracker.field[room] !== undefined) f[place + F[room]] = 1;
    }
    if (tracker.field.trickroom !== undefined) f[place + F.trickroom_turns] = lasts(tracker.field.trickroom);
    const first = place + layout.field.length;
    const team = request.side.pokemon;
    const fainted = tracker.teams[opponent].filter(seen => seen.fainted).length;
    const canUse = active?.moves.some((_, i) => gimmick(active, i));
    this.side(first, tracker, own, team.filter(entry => !hasFainted(entry)).length, canUse ? 1 : 0);
    this.side(first + layout.side.length, tracker, opponent, tracker.sizes[opponent] - fainted,
      tracker.gimmickUsed[opponent] ? 0 : 1);
  }

  side(place, tracker, side, left, gimmickLeft) {
    const f = this.floats;
    f[place + S.left] = left / TEAM;
    f[place + S.gimmick_left] = gimmickLeft;
    const conditions = tracker.conditions[side];
    for (const id in conditions) {
      if (S[id] === undefined) continue;
      f[place + S[id]] = Math.min(1, conditions[id].layers / (MOST_LAYERS[id] ?? 1));
    }
  }
}

/** The highest multiplier that one of the types has against a target. */
function worst(types, defences) {
  let most = 0;
  for (const type of types) most = Math.max(most, defences[type] ?? 1);
  return most;
}

function speed(view) {
  const paralysed = view.status === 'par' ? 0.5 : 1;
  const scarf = view.item === 'choicescarf' ? 1.5 : 1;
  return view.stats.spe * boostFactor(view.boosts.spe) * paralysed * scarf;
}

module.exports = { Encoder };
