'use strict';
/**
 * Plays random battles and prints a hash of each one's log, to see whether two simulators are the same.
 *
 * node compare.js FOLDER_OF_POKEMON_SHOWDOWN fast|plain FORMAT FIRST_SEED BATTLES
 */

const crypto = require('crypto');
const path = require('path');

const hex = text => crypto.createHash('sha256').update(text).digest('hex').slice(0, 16);
const seedFor = (number, purpose) => `gen5,${hex(`${number}/${purpose}`)}`;

async function logOf(simulator, format, number) {
  const { BattleStream, getPlayerStreams } = require(`${simulator}/battle-stream`);
  const { RandomPlayerAI } = require(`${simulator}/tools/random-player-ai`);
  const streams = getPlayerStreams(new BattleStream());
  for (const player of ['p1', 'p2']) {
    const seed = seedFor(number, `${player} chooses`);
    void new RandomPlayerAI(streams[player], { seed, mega: 0.6, move: 0.8 }).start();
  }
  const say = (word, options) => streams.omniscient.write(`>${word} ${JSON.stringify(options)}`);
  void say('start', { formatid: format, seed: seedFor(number, 'battle') });
  for (const player of ['p1', 'p2']) void say(`player ${player}`, { name: player, seed: seedFor(number, player) });
  const log = [];
  for await (const chunk of streams.omniscient) log.push(chunk);
  return log.join('\n').replace(/^\|t:\|\d+$/gm, '');
}

async function main(showdown, speed, format, first, battles) {
  const simulator = path.join(path.resolve(showdown), 'dist', 'sim');
  if (speed === 'fast') require('./fast')(simulator);
  for (let number = Number(first); number < Number(first) + Number(battles); number++) {
    const log = await logOf(simulator, format, number);
    console.log(`${number} ${log.split('\n').length} ${hex(log)}`);
  }
}

void main(...process.argv.slice(2));
