'use strict';
/**
 * A faster way to the same battles: skips searches for event handlers that can't find any, and copies moves
 * by their shape.
 *
 * The simulator asks every effect in play (abilities, items, rules, ...) for up to five callbacks on every
 * event, and almost none has one. Effects are frozen after loading, so which events an effect can answer is
 * remembered here once. Only empty searches are left out: what is found, and its order, is the simulator's.
 */

const PREFIXES = ['Ally', 'Foe', 'Any', 'Source'];
const NOTHING = new Set();

/** Effect -> names of the events that one of its callbacks may answer. */
const remembered = new Map();

/** null for an effect that may still change, so that nothing can be said about it. */
function eventsOf(effect) {
  const known = remembered.get(effect);
  if (known !== undefined) return known;
  // Rules are the one kind that isn't frozen; they only get fields that aren't callbacks.
  if (!Object.isFrozen(effect) && !['Format', 'Rule', 'Ruleset'].includes(effect.effectType)) return null;
  const events = new Set();
  for (const key in effect) {
    if (!key.startsWith('on')) continue;
    const event = key.slice(2);
    events.add(event);
    for (const prefix of PREFIXES) if (event.startsWith(prefix)) events.add(event.slice(prefix.length));
    if (event === 'Start') events.add('SwitchIn'); // abilities and items answer it by onStart
  }
  const result = events.size ? events : NOTHING;
  remembered.set(effect, result);
  return result;
}

function answers(effect, event) {
  const events = eventsOf(effect);
  return events === null || (events !== NOTHING && events.has(event));
}

function anyAnswers(conditions, states, event) {
  for (const id in states) if (answers(conditions.getByID(id), event)) return true;
  return false;
}

function pokemonAnswers(dex, pokemon, event) {
  if (answers(pokemon.getAbility(), event) || answers(pokemon.getItem(), event)) return true;
  if (pokemon.status && answers(pokemon.getStatus(), event)) return true;
  if (answers(pokemon.baseSpecies, event)) return true;
  if (anyAnswers(dex.conditions, pokemon.volatiles, event)) return true;
  return anyAnswers(dex.conditions, pokemon.side.slotConditions[pokemon.position], event);
}

function fieldAnswers(battle, event) {
  const { field, dex } = battle;
  if (anyAnswers(dex.conditions, field.pseudoWeather, event)) return true;
  if (field.weather && answers(field.getWeather(), event)) return true;
  if (field.terrain && answers(field.getTerrain(), event)) return true;
  return battle.events !== null || answers(battle.format, event);
}

/** Whether anything in play, or one of the two Pokémon, may answer the event. */
function someoneAnswers(battle, event, target, source) {
  if (fieldAnswers(battle, event)) return true;
  for (const side of battle.sides) {
    if (anyAnswers(battle.dex.conditions, side.sideConditions, event)) return true;
    for (const pokemon of side.active) {
      if (pokemon && pokemonAnswers(battle.dex, pokemon, event)) return true;
    }
  }
  for (const pokemon of [target, source]) {
    if (pokemon?.getAbility && !pokemon.isActive && pokemonAnswers(battle.dex, pokemon, event)) return true;
  }
  return false;
}

/** Move -> names of its fields that hold objects. */
const nested = new Map();

/** What the simulator's deepClone gives for a move, which is frozen: only fields with objects need care. */
function copyOf(move, deepClone) {
  let names = nested.get(move);
  if (!names) {
    names = Object.keys(move).filter(name => move[name] !== null && typeof move[name] === 'object');
    nested.set(move, names);
  }
  const copy = { __proto__: Object.getPrototypeOf(move), ...move };
  for (const name of names) copy[name] = deepClone(move[name]);
  return copy;
}

function copyMovesFaster(sim) {
  require(`${sim}/dex`).Dex.ModdedDex.prototype.getActiveMove = function (given) {
    if (given && typeof given.hit === 'number') return given; // a copy already
    const move = this.moves.get(given);
    const copy = Object.isFrozen(move) ? copyOf(move, this.deepClone) : this.deepClone(move);
    copy.hit = 0;
    return copy;
  };
}

/** Changes the simulator in this process. sim: the folder of its `battle.js` */
function makeFaster(sim) {
  copyMovesFaster(sim);
  const { Battle } = require(`${sim}/battle`);
  const { findEventHandlers, findPokemonEventHandlers } = Battle.prototype;

  Battle.prototype.findEventHandlers = function (target, eventName, source) {
    const one = this.started && !Array.isArray(target); // before the start, sides aren't complete
    if (one && !someoneAnswers(this, eventName, target, source)) return [];
    return findEventHandlers.call(this, target, eventName, source);
  };

  Battle.prototype.findPokemonEventHandlers = function (pokemon, callbackName, getKey) {
    // With a key, effects are found by their state as well.
    const byCallback = this.started && getKey === undefined;
    if (byCallback && !pokemonAnswers(this.dex, pokemon, callbackName.slice(2))) return [];
    return findPokemonEventHandlers.call(this, pokemon, callbackName, getKey);
  };
}

module.exports = makeFaster;
