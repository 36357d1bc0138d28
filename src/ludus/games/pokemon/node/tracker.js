'use strict';
/**
 * Tracker: what one seat knows of its battle, from the protocol lines that it may see.
 *
 * The same lines come from the simulator in this process and from a server's websocket. The tracker must not
 * look into a battle. What the seat's own team has is in its requests, which are the truth.
 */

const { STATS, Seen, toID } = require('./seen');
const { View } = require('./view');

const SIDES = { p1: 0, p2: 1 };
const TEAM = 6;

class Tracker {
  constructor(dex, side) {
    this.dex = dex;
    this.own = SIDES[side];
    this.turn = 0;
    this.teams = [[], []];
    this.active = [null, null];
    this.arrived = [null, null]; // how the active ones were when they came, in case they were disguised
    this.sizes = [6, 6];
    this.conditions = [{}, {}]; // of sides: name -> { layers, since }
    this.weather = { id: '', since: 0 };
    this.field = {}; // terrains and rooms: name -> turn it began
    this.gimmickUsed = [false, false];
    this.views = []; // of the own team, in the order of the last request
  }

  get opponent() {
    return 1 - this.own;
  }

  /** line: one protocol line, e.g. '|move|p1a: Rayquaza|Earthquake|p2a: Ditto' */
  read(line) {
    this.take(line.split('|'));
  }

  /** parts: a line split at '|', so parts[1] says what happened */
  take(parts) {
    const handle = HANDLERS[parts[1]];
    if (!handle) return;
    const last = parts[parts.length - 1];
    if (parts.length > 4 && last.charCodeAt(0) === 91) this.learnFromSource(parts); // '['
    handle(this, parts);
  }

  takeRequest(request) {
    const active = request.active?.[0];
    if (active) this.viewOf(request.side.pokemon[0], 0).keepShares(active.moves);
  }

  /** The view of an entry in a request. Only switches change places, so most are where they were. */
  viewOf({ ident }, place) {
    const { views } = this;
    let at = place;
    while (at < views.length && views[at].ident !== ident) at++;
    if (at === views.length) views.push(new View(this.dex, ident));
    if (at !== place) [views[place], views[at]] = [views[at], views[place]];
    return views[place];
  }

  /** The own team, as the request orders it. */
  ownViews(request) {
    const team = request.side.pokemon;
    const count = Math.min(team.length, TEAM);
    for (let i = 0; i < count; i++) {
      const present = i === 0 && team[i].active && !request.teamPreview;
      const choosing = i === 0 ? request.active?.[0] : null;
      this.viewOf(team[i], i).showOwn(team[i], choosing, present ? this.active[this.own] : null);
    }
    this.views.length = count;
    return this.views;
  }

  /** The opponent's team as far as it is known, the active one first. */
  opponentViews() {
    const { opponent } = this;
    const foes = this.teams[opponent].filter(seen => !seen.active);
    if (this.active[opponent]?.active) foes.unshift(this.active[opponent]);
    foes.splice(TEAM);
    return foes.map(seen => {
      seen.view ??= new View(this.dex);
      seen.view.showOpponent(seen);
      return seen.view;
    });
  }

  /** ident: e.g. 'p2a: Ditto' or 'p2: Ditto' */
  find(ident) {
    const side = SIDES[ident.slice(0, 2)];
    const name = ident.slice(ident.indexOf(': ') + 2);
    const active = this.active[side];
    if (active && active.name === name) return active;
    return this.teams[side].find(one => one.name === name) ?? active;
  }

  /** An ability or item that a line gives as its cause: '[from] item: Leftovers', '[of] p2a: Ditto'. */
  learnFromSource(parts) {
    let from = '';
    let of = '';
    for (let i = 3; i < parts.length; i++) {
      if (parts[i].startsWith('[from] ')) from = parts[i].slice(7);
      else if (parts[i].startsWith('[of] ')) of = parts[i].slice(5);
    }
    if (!from || parts[1] === '-ability') return;
    // Whom the cause belongs to: healing and immunity are one's own, and [of] is then the attacker.
    const own = !of || parts[1] === '-heal' || parts[1] === '-immune';
    const owner = own ? parts[2] : of;
    if (!/^p[12]/.test(owner)) return;
    const pokemon = this.find(owner);
    if (!pokemon) return;
    if (from.startsWith('ability: ')) pokemon.showAbility(toID(from.slice(9)));
    else if (from.startsWith('item: ')) pokemon.showItem(toID(from.slice(6)));
  }
}

const effectID = text => toID(text.slice(text.indexOf(': ') < 0 ? 0 : text.indexOf(': ') + 2));

/** condition: e.g. '57/100 brn' or '0 fnt' */
function setCondition(pokemon, condition) {
  const [hp, status] = condition.split(' ');
  const [now, most] = hp.split('/');
  pokemon.hp = most ? Number(now) / Number(most) : Number(now) ? 1 : 0;
  if (status !== pokemon.status) setStatus(pokemon, status ?? '');
}

function setStatus(pokemon, status) {
  pokemon.status = status;
  pokemon.asleepTurns = pokemon.toxicTurns = 0;
}

/** The Pokémon that a line shows, which may have been announced in the team preview only. */
function meet(tracker, ident, details) {
  const side = SIDES[ident.slice(0, 2)];
  const name = ident.slice(ident.indexOf(': ') + 2);
  const team = tracker.teams[side];
  let found = team.find(one => one.revealed && one.name === name && sameKind(one, details));
  found ??= team.find(one => !one.revealed && sameKind(one, details));
  if (!found) {
    found = new Seen(tracker.dex, name, details);
    team.push(found);
  }
  if (!found.revealed || found.details !== details) found.describe(tracker.dex, details);
  found.name = name;
  found.revealed = true;
  return found;
}

/** Whether details can be of this Pokémon, which may have changed its form. */
function sameKind(pokemon, details) {
  if (pokemon.details === details) return true;
  const name = details.split(', ')[0];
  const species = pokemon.species;
  return species.name === name || species.baseSpecies === name || species.baseSpecies === name.split('-')[0];
}

function comeIn(tracker, [, , ident, details, condition, ...more]) {
  const side = SIDES[ident.slice(0, 2)];
  const before = tracker.active[side];
  const { boosts, volatiles } = before ?? {};
  if (before) before.leave();
  const pokemon = meet(tracker, ident, details);
  pokemon.leave();
  setCondition(pokemon, condition);
  tracker.arrived[side] = { ...pokemon, moves: new Map(pokemon.moves) };
  pokemon.active = true;
  tracker.active[side] = pokemon;
  const passed = more.includes('[from] Baton Pass');
  if (passed) pokemon.boosts = boosts;
  if ((passed || more.includes('[from] Shed Tail')) && volatiles?.substitute) pokemon.volatiles.substitute = 1;
}

/** A disguise fell: the one it looked like was never there. */
function unmask(tracker, [, , ident, details]) {
  const side = SIDES[ident.slice(0, 2)];
  const disguise = tracker.active[side];
  const { hp, status, boosts, volatiles, activeTurns } = disguise;
  Object.assign(disguise, tracker.arrived[side]);
  disguise.leave();
  const pokemon = meet(tracker, ident, details);
  Object.assign(pokemon, { hp, status, boosts, volatiles, activeTurns, active: true });
  tracker.active[side] = pokemon;
}

function changeForm(tracker, parts, lasting) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  if (lasting) {
    pokemon.describe(tracker.dex, parts[3]);
    pokemon.ability = pokemon.bornAbility = null; // a form may have another
  } else pokemon.form = tracker.dex.species.get(parts[3]);
}

function usedMove(tracker, parts) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  const move = tracker.dex.moves.get(parts[3]);
  pokemon.lastMove = move.id;
  delete pokemon.volatiles.charging;
  delete pokemon.volatiles.mustrecharge;
  const from = parts.find(part => part.startsWith('[from]'));
  if (from || move.isZ || move.isMax || move.id === 'struggle') return; // not one of its own, or not by choice
  const moves = pokemon.copied ?? pokemon.moves;
  if (moves.has(move.id) || moves.size < 4) moves.set(move.id, (moves.get(move.id) ?? 0) + 1);
}

function changeBoost(tracker, parts, sign) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  const boosts = pokemon.boosts;
  boosts[parts[3]] = Math.max(-6, Math.min(6, boosts[parts[3]] + sign * Number(parts[4])));
}

function eachBoost(pokemon, change) {
  if (pokemon) for (const stat of STATS) pokemon.boosts[stat] = change(pokemon.boosts[stat], stat);
}

function swapBoosts(tracker, [, , first, second, list]) {
  const one = tracker.find(first);
  const other = tracker.find(second);
  if (!one || !other) return;
  const stats = list && !list.startsWith('[') ? list.split(', ') : STATS;
  for (const stat of stats) [one.boosts[stat], other.boosts[stat]] = [other.boosts[stat], one.boosts[stat]];
}

function startEffect(tracker, parts) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  const effect = effectID(parts[3]);
  if (effect === 'typechange') pokemon.types = parts[4] && !parts[4].startsWith('[') ? parts[4].split('/') : null;
  else if (effect === 'typeadd') pokemon.added = parts[4];
  else if (effect.startsWith('perish')) pokemon.volatiles.perish = 4 - Number(effect.slice(6) || 3);
  else pokemon.volatiles[effect] = 1;
  if (effect === 'dynamax') tracker.gimmickUsed[SIDES[parts[2].slice(0, 2)]] = true;
}

function transform(tracker, [, , ident, target]) {
  const pokemon = tracker.find(ident);
  const model = tracker.find(target);
  if (!pokemon || !model) return;
  pokemon.form = model.form;
  pokemon.types = model.types;
  pokemon.ability = model.ability;
  pokemon.copied = new Map([...(model.copied ?? model.moves).keys()].map(id => [id, 0]));
  pokemon.boosts = { ...model.boosts };
  pokemon.volatiles.transformed = 1;
}

function setWeather(tracker, parts) {
  const id = parts[2] === 'none' ? '' : toID(parts[2]);
  if (id !== tracker.weather.id) tracker.weather = { id, since: tracker.turn };
}

function startField(tracker, parts) {
  const id = effectID(parts[2]);
  if (id.endsWith('terrain')) endTerrain(tracker);
  tracker.field[id] = tracker.turn;
}

function endTerrain(tracker) {
  for (const id of Object.keys(tracker.field)) if (id.endsWith('terrain')) delete tracker.field[id];
}

function startSide(tracker, parts) {
  const conditions = tracker.conditions[SIDES[parts[2].slice(0, 2)]];
  const condition = (conditions[effectID(parts[3])] ??= { layers: 0, since: tracker.turn });
  condition.layers += 1;
}

function nextTurn(tracker, parts) {
  tracker.turn = Number(parts[2]);
  for (const pokemon of tracker.active) {
    if (!pokemon) continue;
    pokemon.activeTurns += 1;
    if (pokemon.status === 'tox') pokemon.toxicTurns += 1;
    if (pokemon.volatiles.protect && --pokemon.volatiles.protect === 0) delete pokemon.volatiles.protect;
  }
}

/** What kept a Pokémon from moving. */
function couldNotMove(tracker, parts) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  if (parts[3] === 'slp') pokemon.asleepTurns += 1;
  if (parts[3] === 'recharge') delete pokemon.volatiles.mustrecharge;
}

function setAbility(tracker, parts) {
  const pokemon = tracker.find(parts[2]);
  if (!pokemon) return;
  const id = toID(parts[3]);
  const from = parts.find(part => part.startsWith('[from] '));
  if (!from) return pokemon.showAbility(id);
  pokemon.ability = id; // somebody else's, until it leaves the field
  const of = parts.find(part => part.startsWith('[of] '));
  if (from !== '[from] ability: Trace' || !of) return;
  pokemon.bornAbility = 'trace';
  tracker.find(of.slice(5))?.showAbility(id);
}

function activate(tracker, parts) {
  const pokemon = /^p[12]/.test(parts[2]) ? tracker.find(parts[2]) : null;
  if (!pokemon || !parts[3]) return;
  if (parts[3].startsWith('ability: ')) pokemon.showAbility(toID(parts[3].slice(9)));
  else if (parts[3].startsWith('item: ')) pokemon.showItem(toID(parts[3].slice(6)));
}

function cureTeam(tracker, parts) {
  for (const pokemon of tracker.teams[SIDES[parts[2].slice(0, 2)]]) {
    if (!pokemon.fainted) setStatus(pokemon, '');
  }
}

/** A handler that changes the Pokémon a line names. */
const ofPokemon = change => (tracker, parts) => {
  const pokemon = tracker.find(parts[2]);
  if (pokemon) change(pokemon, parts, tracker);
};

const setHealth = ofPokemon((pokemon, parts) => setCondition(pokemon, parts[3]));
const useGimmick = tracker => side => (tracker.gimmickUsed[SIDES[side.slice(0, 2)]] = true);

const HANDLERS = {
  turn: nextTurn,
  teamsize: (tracker, parts) => (tracker.sizes[SIDES[parts[2]]] = Number(parts[3])),
  poke: (tracker, parts) => tracker.teams[SIDES[parts[2]]].push(new Seen(tracker.dex, '', parts[3])),
  clearpoke: tracker => (tracker.teams = [[], []]),
  switch: comeIn,
  drag: comeIn,
  replace: unmask,
  move: usedMove,
  cant: couldNotMove,
  detailschange: (tracker, parts) => changeForm(tracker, parts, true),
  '-formechange': (tracker, parts) => changeForm(tracker, parts, false),
  '-transform': transform,
  faint: ofPokemon(pokemon => {
    pokemon.hp = 0;
    pokemon.status = 'fnt';
  }),
  '-damage': setHealth,
  '-heal': setHealth,
  '-sethp': setHealth,
  '-status': ofPokemon((pokemon, parts) => setStatus(pokemon, parts[3])),
  '-curestatus': ofPokemon(pokemon => setStatus(pokemon, '')),
  '-cureteam': cureTeam,
  '-boost': (tracker, parts) => changeBoost(tracker, parts, 1),
  '-unboost': (tracker, parts) => changeBoost(tracker, parts, -1),
  '-setboost': ofPokemon((pokemon, parts) => (pokemon.boosts[parts[3]] = Number(parts[4]))),
  '-swapboost': swapBoosts,
  '-copyboost': (tracker, parts) => {
    const model = tracker.find(parts[3]);
    if (model) eachBoost(tracker.find(parts[2]), (_, stat) => model.boosts[stat]);
  },
  '-invertboost': ofPokemon(pokemon => eachBoost(pokemon, boost => -boost)),
  '-clearboost': ofPokemon(pokemon => eachBoost(pokemon, () => 0)),
  '-clearallboost': tracker => tracker.active.forEach(pokemon => eachBoost(pokemon, () => 0)),
  '-clearpositiveboost': ofPokemon(pokemon => eachBoost(pokemon, boost => Math.min(boost, 0))),
  '-clearnegativeboost': ofPokemon(pokemon => eachBoost(pokemon, boost => Math.max(boost, 0))),
  '-start': startEffect,
  '-end': ofPokemon((pokemon, parts) => delete pokemon.volatiles[effectID(parts[3])]),
  '-singleturn': ofPokemon((pokemon, parts) => {
    if (/protect|detect|shield|bunker|guard|burningbulwark|obstruct|silktrap/.test(effectID(parts[3]))) {
      pokemon.volatiles.protect = 2; // known for one more turn, in which it may fail
    }
  }),
  '-mustrecharge': ofPokemon(pokemon => (pokemon.volatiles.mustrecharge = 1)),
  '-prepare': ofPokemon(pokemon => (pokemon.volatiles.charging = 1)),
  '-item': ofPokemon((pokemon, parts) => pokemon.gainItem(toID(parts[3]))),
  '-enditem': ofPokemon((pokemon, parts) => pokemon.loseItem(toID(parts[3]))),
  '-ability': setAbility,
  '-endability': ofPokemon(pokemon => (pokemon.ability = '')),
  '-activate': activate,
  '-mega': (tracker, parts) => useGimmick(tracker)(parts[2]),
  '-burst': (tracker, parts) => useGimmick(tracker)(parts[2]),
  '-zpower': (tracker, parts) => useGimmick(tracker)(parts[2]),
  '-terastallize': ofPokemon((pokemon, parts, tracker) => {
    pokemon.tera = parts[3];
    useGimmick(tracker)(parts[2]);
  }),
  '-weather': setWeather,
  '-fieldstart': startField,
  '-fieldend': (tracker, parts) => delete tracker.field[effectID(parts[2])],
  '-sidestart': startSide,
  '-sideend': (tracker, parts) => delete tracker.conditions[SIDES[parts[2].slice(0, 2)]][effectID(parts[3])],
  '-swapsideconditions': tracker => tracker.conditions.reverse(),
};

module.exports = { SIDES, Tracker };
