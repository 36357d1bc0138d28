'use strict';
/**
 * Writes vocabulary.json: for each kind of id, the names that a network knows, in the order of their numbers.
 *
 * Run it after a new version of the simulator: node vocabulary.js FOLDER_OF_POKEMON_SHOWDOWN
 * Known names keep their numbers and new ones are added at the end, so that trained networks stay right.
 */

const fs = require('fs');
const path = require('path');

const FILE = path.join(__dirname, 'vocabulary.json');
const STATUSES = ['brn', 'par', 'slp', 'frz', 'psn', 'tox', 'fnt'];

function namesOf(dex) {
  const ids = kind => dex[kind].all().map(entry => entry.id).filter(Boolean);
  return {
    species: ids('species'),
    abilities: ids('abilities'),
    items: ids('items'),
    types: ids('types'),
    moves: [...ids('moves'), 'fight', 'recharge'],
    statuses: STATUSES,
  };
}

function main(showdown) {
  const { Dex } = require(`${path.resolve(showdown)}/dist/sim/dex`);
  const before = fs.existsSync(FILE) ? JSON.parse(fs.readFileSync(FILE, 'utf8')) : {};
  const after = {};
  for (const [kind, names] of Object.entries(namesOf(Dex))) {
    // 0 stands for what isn't known, "none" for what is known to be absent.
    const known = before[kind]?.split(' ') ?? ['?', 'none'];
    after[kind] = [...new Set([...known, ...names])].join(' ');
  }
  fs.writeFileSync(FILE, `${JSON.stringify(after, null, 1)}\n`);
}

if (require.main === module) main(process.argv[2]);
