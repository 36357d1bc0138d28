'use strict';
/**
 * View: one Pokémon in the form that encoding needs, whichever source knows it.
 *
 * A view lives as long as its battle, and little of a Pokémon changes between two decisions: what names and
 * types stand for is looked up again only when they have changed.
 */

const { defences, estimatedStats } = require('./damage');
const { STATS, described, toID } = require('./seen');
const layout = require('./layout.json');
const words = require('./vocabulary.json');

const NONE = 1;
const vocabulary = {};
for (const kind in words) vocabulary[kind] = new Map(words[kind].split(' ').map((name, i) => [name, i]));
/** As the simulator writes types. */
const TYPES = new Map([...vocabulary.types].map(([id, i]) => [id[0].toUpperCase() + id.slice(1), i]));
const NO_BOOSTS = Object.fromEntries(STATS.map(stat => [stat, 0]));
const NO_VOLATILES = {};

/** null: not known; '': known to be absent. */
function number(names, id) {
  if (id === null || id === undefined) return 0;
  return id === '' ? NONE : (names.get(id) ?? 0);
}

/** An id's number in a vocabulary, looked up again only for another id than last time. */
class Word {
  constructor(names) {
    this.names = names;
    this.id = null;
    this.number = 0;
  }

  of(id) {
    if (id !== this.id) {
      this.id = id;
      this.number = number(this.names, id);
    }
    return this.number;
  }
}

class View {
  /** ident: the name in requests, of the own team only */
  constructor(dex, ident = '') {
    this.dex = dex;
    this.ident = ident;
    this.details = this.condition = '';
    this.species = this.form = null;
    this.speciesNumber = 0;
    this.level = 0;
    this.hp = this.most = 0; // most: hit points, 0 if not known
    this.status = '';
    this.estimated = null; // stats
    this.stats = { hp: 0, atk: 0, def: 0, spa: 0, spd: 0, spe: 0 };
    this.onlyAbility = null; // that its form can have
    this.ability = this.item = this.teraType = null;
    this.tera = this.added = '';
    this.bornTypes = null;
    this.types = [];
    this.defences = {}; // attacking type -> multiplier
    this.moves = []; // see `setMove`
    this.shares = []; // of PP that the own active Pokémon had last: { id, share }
    this.take(null);
    this.words = {
      ability: new Word(vocabulary.abilities), item: new Word(vocabulary.items), type_1: new Word(TYPES),
      type_2: new Word(TYPES), tera_type: new Word(TYPES), status: new Word(vocabulary.statuses),
      last_move: new Word(vocabulary.moves),
    };
  }

  /** entry: of a request; active: its moves, if they are to be chosen from; seen: while it is on the field */
  showOwn(entry, active, seen) {
    if (entry.details !== this.details) {
      this.details = entry.details;
      Object.assign(this, described(this.dex, entry.details));
      this.form = null;
    }
    if (entry.condition !== this.condition) this.setCondition(entry.condition);
    this.setForm(seen && isFormOf(seen, this.species) ? seen.form : this.species, this.level);
    const { atk, def, spa, spd, spe } = this.form === this.species ? entry.stats : this.estimated;
    const hp = this.most || estimatedStats(this.species, this.level, this.dex.gen).hp;
    this.setStats(hp, atk, def, spa, spd, spe);
    this.ability = entry.ability ?? entry.baseAbility;
    this.item = entry.item;
    this.tera = entry.terastallized ?? '';
    this.teraType = entry.teraType ?? '';
    this.take(seen);
    if (active) this.setActiveMoves(active.moves);
    else this.setBenchMoves(entry.moves);
  }

  showOpponent(seen) {
    this.setForm(seen.form, seen.level);
    this.hp = seen.hp;
    this.status = seen.status;
    this.ability = seen.ability ?? this.onlyAbility;
    this.item = seen.item;
    this.tera = seen.tera;
    this.teraType = seen.tera || null;
    const { hp, atk, def, spa, spd, spe } = this.estimated;
    this.setStats(hp, atk, def, spa, spd, spe);
    this.take(seen);
    let count = 0;
    for (const [id, used] of seen.copied ?? seen.moves) {
      if (count === layout.moves) break;
      const entry = this.setMove(count++, id, 1, 1);
      entry.pp = Math.max(0, 1 - used / (entry.move.pp * 1.6));
    }
    this.moves.length = count;
  }

  setForm(form, level) {
    if (form === this.form && level === this.level) return;
    this.form = form;
    this.level = level;
    this.estimated = estimatedStats(form, level, this.dex.gen);
    this.onlyAbility = onlyAbility(this.dex, form);
    this.speciesNumber =
      number(vocabulary.species, form.id) || number(vocabulary.species, toID(form.baseSpecies));
  }

  /** text: e.g. '57/270 brn' or '0 fnt' */
  setCondition(text) {
    this.condition = text;
    const slash = text.indexOf('/');
    const space = text.indexOf(' ');
    this.status = space < 0 ? '' : text.slice(space + 1);
    this.most = slash < 0 ? 0 : Number(space < 0 ? text.slice(slash + 1) : text.slice(slash + 1, space));
    this.hp = slash < 0 ? 0 : Number(text.slice(0, slash)) / this.most;
  }

  setStats(hp, atk, def, spa, spd, spe) {
    const { stats } = this;
    stats.hp = hp;
    stats.atk = atk;
    stats.def = def;
    stats.spa = spa;
    stats.spd = spd;
    stats.spe = spe;
  }

  /** What only lasts while a Pokémon is on the field. */
  take(seen) {
    this.boosts = seen ? seen.boosts : NO_BOOSTS;
    this.volatiles = seen ? seen.volatiles : NO_VOLATILES;
    this.lastMove = seen ? seen.lastMove : '';
    this.asleepTurns = seen ? seen.asleepTurns : 0;
    this.toxicTurns = seen ? seen.toxicTurns : 0;
    this.activeTurns = seen ? seen.activeTurns : 0;
    this.active = seen ? seen.active : false;
    if (this.form) this.setTypes(seen?.types ?? this.form.types, seen?.added ?? '');
  }

  /** born: without terastallisation; third: added to them, or '' */
  setTypes(born, third) {
    const added = this.tera ? '' : third;
    const turned = this.tera && this.tera !== 'Stellar' ? this.tera : '';
    const known = turned ? this.types.length === 1 && this.types[0] === turned : this.bornTypes === born;
    if (known && this.added === added) return;
    this.bornTypes = turned ? null : born;
    this.added = added;
    this.types = turned ? [turned] : born;
    if (added) this.types = [...this.types, added];
    this.defences = defences(this.dex, this.types);
  }

  setActiveMoves(moves) {
    const count = Math.min(moves.length, layout.moves);
    for (let i = 0; i < count; i++) {
      const { id, pp, maxpp, disabled } = moves[i];
      this.setMove(i, id, maxpp ? pp / maxpp : 1, disabled ? 0 : 1);
    }
    this.moves.length = count;
  }

  setBenchMoves(ids) {
    const count = Math.min(ids.length, layout.moves);
    for (let i = 0; i < count; i++) this.setMove(i, ids[i], this.shareOf(ids[i])?.share ?? 1, 1);
    this.moves.length = count;
  }

  /** pp: the share that is left; usable: 0 or 1 */
  setMove(place, id, pp, usable) {
    let entry = this.moves[place];
    if (entry?.id !== id) {
      const { move, number } = known(this.dex, id);
      entry = this.moves[place] = { id, move, number, pp, usable };
    }
    entry.pp = pp;
    entry.usable = usable;
    return entry;
  }

  /** Remember how much is left of each move, which requests only say of the active Pokémon. */
  keepShares(moves) {
    for (const { id, pp, maxpp } of moves) {
      if (!maxpp) continue;
      const kept = this.shareOf(id);
      if (kept) kept.share = pp / maxpp;
      else this.shares.push({ id, share: pp / maxpp });
    }
  }

  shareOf(id) {
    for (const one of this.shares) if (one.id === id) return one;
    return null;
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

module.exports = { View };
