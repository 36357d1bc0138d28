'use strict';
/**
 * Damage: a rough estimate of what a move does, as a share of the target's most hit points.
 *
 * It is a feature for networks and bots, not a rule: only what matters often is in it.
 */

const BOOSTED = { atk: 'choiceband', spa: 'choicespecs' };
const SCREENS = { Physical: 'reflect', Special: 'lightscreen' };
const SUN = ['sunnyday', 'desolateland'];
const RAIN = ['raindance', 'primordialsea'];
const AVERAGE_ROLL = 0.925;
const UNKNOWN_POWER = 60; // of moves whose power depends on the moment
const MANY_HITS = 3.1; // of 2 to 5

/** Ability -> the type that does nothing to its owner. */
const IMMUNE = {
  levitate: 'Ground', eartheater: 'Ground',
  flashfire: 'Fire', wellbakedbody: 'Fire',
  waterabsorb: 'Water', stormdrain: 'Water', dryskin: 'Water',
  voltabsorb: 'Electric', lightningrod: 'Electric', motordrive: 'Electric',
  sapsipper: 'Grass',
};

/** Dex -> types of a Pokémon, joined -> attacking type -> multiplier. */
const remembered = new Map();

/** Attacking type -> its multiplier against a Pokémon of these types. Not to be changed. */
function defences(dex, types) {
  let ofDex = remembered.get(dex);
  if (!ofDex) remembered.set(dex, (ofDex = new Map()));
  const key = types.join();
  let found = ofDex.get(key);
  if (!found) ofDex.set(key, (found = calculatedDefences(dex, types)));
  return found;
}

function calculatedDefences(dex, types) {
  const found = {};
  for (const attacking of [...dex.types.all().map(type => type.name), '???']) {
    found[attacking] = 1;
    for (const defending of types) {
      const immune = !dex.getImmunity(attacking, defending);
      found[attacking] *= immune ? 0 : 2 ** dex.getEffectiveness(attacking, defending);
    }
  }
  return found;
}

/** Species -> level -> stats. */
const estimates = new Map();

/** All stats at average investment, for a Pokémon whose own aren't known. Not to be changed. */
function estimatedStats(species, level, gen) {
  let levels = estimates.get(species);
  if (!levels) estimates.set(species, (levels = []));
  return (levels[level] ??= calculatedStats(species, level, gen));
}

function calculatedStats(species, level, gen) {
  const invested = gen <= 2 ? 93 : 52;
  const stats = {};
  for (const name in species.baseStats) {
    stats[name] = Math.floor(((2 * species.baseStats[name] + invested) * level) / 100) + 5;
  }
  stats.hp += level + 5;
  return stats;
}

const boostFactor = boost => (boost >= 0 ? (2 + boost) / 2 : 2 / (2 - boost));

function power(move) {
  const hits = Array.isArray(move.multihit) ? MANY_HITS : (move.multihit ?? 1);
  return (move.basePower || UNKNOWN_POWER) * hits;
}

/** Multiplier for a move of its user's own type. */
function sameType(user, type) {
  const born = user.form.types.includes(type);
  if (user.tera === type) return born ? 2 : 1.5;
  return born || user.types?.includes(type) ? 1.5 : 1;
}

function typeOf(move, user) {
  return move.id === 'terablast' && user.tera ? user.tera : move.type;
}

/** How much better a move is against the target's types and ability: 0, 1/4, ... 4. */
function multiplier(move, user, target) {
  const type = typeOf(move, user);
  if (IMMUNE[target.ability] === type || (type === 'Ground' && target.item === 'airballoon')) return 0;
  return target.defences[type] ?? 1;
}

function attack(move, user) {
  const stat = move.category === 'Physical' ? 'atk' : 'spa';
  let value = user.stats[stat] * boostFactor(user.boosts[stat]);
  if (user.item === BOOSTED[stat]) value *= 1.5;
  if (stat === 'atk' && (user.ability === 'hugepower' || user.ability === 'purepower')) value *= 2;
  if (stat === 'atk' && user.status === 'brn' && user.ability !== 'guts') value /= 2;
  return value;
}

function defense(move, target) {
  const stat = (move.overrideDefensiveStat ?? (move.category === 'Physical' ? 'def' : 'spd'));
  let value = target.stats[stat] * boostFactor(target.boosts[stat]);
  if (stat === 'spd' && target.item === 'assaultvest') value *= 1.5;
  return value;
}

function weatherFactor(weather, type) {
  const good = SUN.includes(weather) ? 'Fire' : RAIN.includes(weather) ? 'Water' : '';
  if (!good || (type !== 'Fire' && type !== 'Water')) return 1;
  return type === good ? 1.5 : 0.5;
}

/** user, target: `View`s. conditions: those of the target's side. */
function damage(move, user, target, weather, conditions, factor) {
  if (move.category === 'Status' || factor === 0) return 0;
  const most = target.stats.hp;
  if (move.damage) return (move.damage === 'level' ? user.level : move.damage) / most;
  if (move.ohko) return 0.3;
  const type = typeOf(move, user);
  let amount = (((2 * user.level) / 5 + 2) * power(move) * attack(move, user)) / defense(move, target) / 50 + 2;
  amount *= sameType(user, type) * factor * weatherFactor(weather, type) * AVERAGE_ROLL;
  if (user.item === 'lifeorb') amount *= 1.3;
  if (conditions[SCREENS[move.category]] || conditions.auroraveil) amount /= 2;
  return amount / most;
}

module.exports = { boostFactor, damage, defences, estimatedStats, multiplier };
