'use strict';
/** A Pokémon as a seat has seen it. */

const STATS = ['atk', 'def', 'spa', 'spd', 'spe', 'accuracy', 'evasion'];
const toID = text => text.toLowerCase().replace(/[^a-z0-9]+/g, '');

/** Dex -> details -> what they say. */
const descriptions = new Map();

/** details: e.g. 'Rayquaza, L72, M, shiny' */
function described(dex, details) {
  let known = descriptions.get(dex);
  if (!known) descriptions.set(dex, (known = new Map()));
  let found = known.get(details);
  if (!found) {
    const parts = details.split(', ');
    const level = parts.find(part => /^L\d+$/.test(part));
    const species = dex.species.get(parts[0].replace('-*', ''));
    found = { species, level: level ? Number(level.slice(1)) : 100 };
    known.set(details, found);
  }
  return found;
}

/** null: not known; '': known to be absent. */
class Seen {
  constructor(dex, name, details) {
    this.name = name;
    this.hp = 1;
    this.status = '';
    this.ability = null; // as it is now
    this.bornAbility = null; // as it is again after leaving the field
    this.item = null;
    this.spentItem = ''; // lines may name it as a cause after it is gone
    this.tera = '';
    this.moves = new Map(); // id -> how often it was used
    this.revealed = false;
    this.view = null; // what was encoded of it last
    this.describe(dex, details);
    this.leave();
  }

  describe(dex, details) {
    const { species, level } = described(dex, details);
    this.details = details;
    this.species = this.form = species;
    this.level = level;
  }

  /** Forget what a Pokémon loses when it leaves the field. */
  leave() {
    this.active = false;
    this.boosts = { atk: 0, def: 0, spa: 0, spd: 0, spe: 0, accuracy: 0, evasion: 0 };
    this.volatiles = {}; // name -> a number, 1 unless it counts something
    this.ability = this.bornAbility;
    this.types = null; // if they aren't those of its form
    this.added = ''; // a third type
    this.copied = null; // moves of the Pokémon it transformed into, as `moves`
    this.form = this.species;
    this.lastMove = '';
    this.asleepTurns = this.asleepTurns ?? 0;
    this.toxicTurns = 0;
    this.activeTurns = 0;
  }

  get fainted() {
    return this.status === 'fnt';
  }

  showAbility(id) {
    this.ability = this.bornAbility = id;
  }

  showItem(id) {
    if (id !== this.spentItem) this.item = id;
  }

  gainItem(id) {
    this.item = id;
    this.spentItem = '';
  }

  loseItem(id) {
    this.item = '';
    this.spentItem = id;
  }
}

module.exports = { STATS, Seen, described, toID };
