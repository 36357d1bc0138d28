'use strict';
/**
 * Encoder: what a seat knows (tracker and request) as numbers, as layout.json names them.
 *
 * The own team comes first, in the request's order, so that a switch's action names a row; then the
 * opponent's, the active one first. Everything is written straight into the answer's memory.
 */

const { boostFactor, damage, effectiveness, estimatedStats, multiplier } = require('./damage');
const { eachLegal, hasFainted, gimmick } = require('./actions');
const { STATS, described, toID } = require('./seen');
const layout = require('./layout.json');
const words = require('./vocabulary.json');

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

const NONE = 1;
const vocabulary = {};
for (const kind in words) vocabulary[kind] = new Map(words[kind].split(' ').map((name, i) => [name, i]));

/** null: not known; '': known to be absent. */
function number(names, id) {
  if (id === null || id === undefined) return 0;
  return id === '' ? NONE : (names.get(id) ?? 0);
}

const TYPES = {};
for (const [id, i] of vocabulary.types) TYPES[id[0].toUpperCase() + id.slice(1)] = i;
const typeNumber = type => (type ? (TYPES[type] ?? 0) : number(vocabulary.types, type));

const VOLATILES = [
  'substitute', 'confusion', 'leechseed', 'taunt', 'encore', 'disable', 'yawn', 'attract', 'protect',
  'mustrecharge', 'charging', 'dynamax', 'transformed',
];
const WEATHERS = {
  sunnyday: 'sun', desolateland: 'sun', raindance: 'rain', primordialsea: 'rain', sandstorm: 'sand',
  hail: 'snow', snow: 'snow', snowscape: 'snow', deltastream: 'strong_winds',
};
const TERRAINS = ['electricterrain', 'grassyterrain', 'mistyterrain', 'psychicterrain'];
const MOST_LAYERS = { spikes: 3, toxicspikes: 2 };
const NO_BOOSTS = Object.fromEntries(STATS.map(stat => [stat, 0]));
const STAT_SCALE = 400;
const LONG_TURNS = 8; // what counts as long for anything that lasts a few turns

/** One Pokémon in the form that encoding needs, whichever source knows it. */
class View {
  static own(dex, entry, active, seen) {
    const view = new View();
    const { species, level } = described(dex, entry.details);
    view.form = active && seen && isFormOf(seen, species) ? seen.form : species;
    view.level = level;
    const { hp, most, status } = condition(entry.condition);
    view.hp = hp;
    view.status = status;
    const { atk, def, spa, spd, spe } =
      view.form === species ? entry.stats : estimatedStats(view.form, level, dex.gen);
    view.stats = { hp: most || estimatedStats(species, level, dex.gen).hp, atk, def, spa, spd, spe };
    view.ability = entry.ability ?? entry.baseAbility;
    view.item = entry.item;
    view.tera = entry.terastallized ?? '';
    view.teraType = entry.teraType ?? '';
    view.take(active ? seen : null);
    return view;
  }

  static opponent(dex, seen) {
    const view = new View();
    view.form = seen.form;
    view.level = seen.level;
    view.hp = seen.hp;
    view.status = seen.status;
    view.stats = estimatedStats(seen.form, seen.level, dex.gen);
    view.ability = seen.ability ?? onlyAbility(dex, seen.form);
    view.item = seen.item;
    view.tera = seen.tera;
    view.teraType = seen.tera || null;
    view.take(seen);
    return view;
  }

  /** What only lasts while a Pokémon is on the field. */
  take(seen) {
    this.boosts = seen ? seen.boosts : NO_BOOSTS;
    this.volatiles = seen ? seen.volatiles : {};
    this.lastMove = seen ? seen.lastMove : '';
    this.asleepTurns = seen ? seen.asleepTurns : 0;
    this.toxicTurns = seen ? seen.toxicTurns : 0;
    this.activeTurns = seen ? seen.activeTurns : 0;
    this.types = this.tera && this.tera !== 'Stellar' ? [this.tera] : (seen?.types ?? this.form.types);
    if (seen?.added && !this.tera) this.types = [...this.types, seen.added];
    this.active = seen ? seen.active : false;
  }
}

/** The ability that a species must have, or null if there are several. */
function onlyAbility(dex, species) {
  if (dex.gen < 3) return 'noability';
  return species.abilities[1] || species.abilities.H ? null : toID(species.abilities[0]);
}

/** Whether what is seen can be this species in another form: a disguised Pokémon is seen as another. */
function isFormOf(seen, species) {
  return seen.volatiles.transformed || seen.form.baseSpecies === species.baseSpecies;
}

/** text: e.g. '57/270 brn' or '0 fnt' */
function condition(text) {
  const slash = text.indexOf('/');
  if (slash < 0) return { hp: 0, most: 0, status: text.slice(text.indexOf(' ') + 1) };
  const space = text.indexOf(' ');
  const most = Number(space < 0 ? text.slice(slash + 1) : text.slice(slash + 1, space));
  return { hp: Number(text.slice(0, slash)) / most, most, status: space < 0 ? '' : text.slice(space + 1) };
}

/** What stands in a request where no move can be made: recharging, or gen 1's `fight`. */
const NO_MOVE = { id: '', type: '???', category: 'Status', basePower: 0, accuracy: true, priority: 0, pp: 1 };

/** What the encoder needs of a move. All have one shape, which makes reading them several times as fast. */
function traits(move) {
  const { id, type, category, basePower, accuracy, priority, pp } = move;
  const { multihit = null, damage = null, ohko = null, overrideDefensiveStat = null } = move;
  return {
    id, type, category, basePower, accuracy, priority, pp, multihit, damage, ohko, overrideDefensiveStat,
  };
}

/** Dex -> id in a request -> what is always true of the move. */
const moves = new Map();

function known(dex, id) {
  let ofDex = moves.get(dex);
  if (!ofDex) moves.set(dex, (ofDex = new Map()));
  let found = ofDex.get(id);
  if (!found) {
    // Requests write Hidden Power, Return and Frustration with their type or power: hiddenpowerfire60.
    const plain = /^(hiddenpower|return|frustration)/.test(id) ? id.replace(/\d+$/, '') : id;
    const move = dex.moves.get(id);
    found = { move: traits(move.exists ? move : NO_MOVE), number: number(vocabulary.moves, plain) };
    ofDex.set(id, found);
  }
  return found;
}

/** A move as the encoder needs it. pp: the share that is left; usable: 0 or 1 */
function moveEntry(dex, id, pp, usable) {
  const { move, number } = known(dex, id);
  return { move, number, pp, usable };
}

function ownMoves(tracker, request, place) {
  const { dex } = tracker;
  const entry = request.side.pokemon[place];
  const active = place === 0 ? request.active?.[0] : null;
  if (active) {
    return active.moves.map(move => {
      const pp = move.maxpp ? move.pp / move.maxpp : 1;
      return moveEntry(dex, move.id, pp, move.disabled ? 0 : 1);
    });
  }
  const shares = tracker.ppShares[entry.ident] ?? {};
  return entry.moves.map(id => moveEntry(dex, id, shares[id] ?? 1, 1));
}

function seenMoves(dex, seen) {
  const moves = [];
  for (const [id, used] of seen.copied ?? seen.moves) {
    const entry = moveEntry(dex, id, 1, 1);
    entry.pp = Math.max(0, 1 - used / (entry.move.pp * 1.6));
    moves.push(entry);
  }
  return moves;
}

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
    const { dex, own, opponent } = tracker;
    const team = request.side.pokemon;
    const ids = start / 2;
    const numbers = (start + IDS_BYTES) / 4;
    const present = !request.teamPreview;
    const mine = team.slice(0, TEAM).map((entry, i) =>
      View.own(dex, entry, present && i === 0 && entry.active, tracker.active[own]));
    const foes = tracker.teams[opponent].filter(seen => !seen.active);
    if (tracker.active[opponent]?.active) foes.unshift(tracker.active[opponent]);
    foes.splice(TEAM);
    const theirs = foes.map(seen => View.opponent(dex, seen));
    const ourActive = mine[0]?.active && mine[0].hp ? mine[0] : null;
    const theirActive = theirs[0]?.active && theirs[0].hp ? theirs[0] : null;
    mine.forEach((view, i) => {
      const moves = ownMoves(tracker, request, i);
      this.pokemon(ids, numbers, i, tracker, view, moves, theirActive, tracker.conditions[opponent], 1);
    });
    theirs.forEach((view, i) => {
      const moves = seenMoves(dex, foes[i]);
      this.pokemon(ids, numbers, TEAM + i, tracker, view, moves, ourActive, tracker.conditions[own], 0);
    });
    this.field(numbers + ROWS * NUMBERS, tracker, request);
  }

  /** rival: the opponent's active Pokémon, or null; conditions: of its side */
  pokemon(ids, numbers, row, tracker, view, moves, rival, conditions, own) {
    const { dex } = tracker;
    this.ids(ids + row * IDS, view, moves);
    const f = this.floats;
    const n = numbers + row * NUMBERS;
    f[n + N.known] = 1;
    f[n + N.own] = own;
    f[n + N.active] = view.active ? 1 : 0;
    f[n + N.fainted] = view.status === 'fnt' ? 1 : 0;
    f[n + N.hp] = view.hp;
    f[n + N.level] = view.level / 100;
    f[n + N.terastallized] = view.tera ? 1 : 0;
    let place = n + N.stat_hp;
    const { hp, atk, def, spa, spd, spe } = view.stats;
    for (const stat of [hp, atk, def, spa, spd, spe]) f[place++] = stat / STAT_SCALE;
    if (view.active) this.onField(n, view);
    if (rival) this.matchup(n, tracker, view, rival);
    for (let i = 0; i < moves.length && i < layout.moves; i++) {
      const m = n + MOVE_START + i * MOVE_NUMBERS;
      this.move(m, dex, moves[i], view, rival, tracker.weather.id, conditions);
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
    for (const name of VOLATILES) if (view.volatiles[name]) f[n + N[name]] = 1;
  }

  ids(place, view, moves) {
    const ids = this.shorts;
    const types = view.types;
    ids[place + ID.species] =
      number(vocabulary.species, view.form.id) || number(vocabulary.species, toID(view.form.baseSpecies));
    ids[place + ID.ability] = number(vocabulary.abilities, view.ability);
    ids[place + ID.item] = number(vocabulary.items, view.item);
    ids[place + ID.type_1] = typeNumber(types[0] ?? '');
    ids[place + ID.type_2] = typeNumber(types[1] ?? '');
    ids[place + ID.tera_type] = typeNumber(view.teraType);
    ids[place + ID.status] = number(vocabulary.statuses, view.status);
    for (let i = 0; i < moves.length && i < layout.moves; i++) ids[place + ID.move_1 + i] = moves[i].number;
    ids[place + ID.last_move] = number(vocabulary.moves, view.lastMove);
  }

  /** How the types of two Pokémon meet, and which of them is faster. */
  matchup(n, tracker, view, rival) {
    const { dex } = tracker;
    this.floats[n + N.threat] = worst(dex, rival.types, view.types) / 2;
    this.floats[n + N.pressure] = worst(dex, view.types, rival.types) / 2;
    this.floats[n + N.faster] = speed(view) > speed(rival) ? 1 : 0;
  }

  move(m, dex, entry, user, rival, weather, conditions) {
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
    const factor = multiplier(dex, move, user, rival);
    f[m + M.effectiveness] = factor / 2;
    f[m + M.damage] = Math.min(2, damage(dex, move, user, rival, weather, conditions, factor));
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

/** The highest multiplier that one of the types has against a target's. */
function worst(dex, types, target) {
  let most = 0;
  for (const type of types) most = Math.max(most, effectiveness(dex, type, target));
  return most;
}

function speed(view) {
  const paralysed = view.status === 'par' ? 0.5 : 1;
  const scarf = view.item === 'choicescarf' ? 1.5 : 1;
  return view.stats.spe * boostFactor(view.boosts.spe) * paralysed * scarf;
}

module.exports = { Encoder };
