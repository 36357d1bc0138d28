'use strict';
/**
 * Bridge: many battles in one process. Each line that comes in is a tick and is answered by one line, after
 * which come as many bytes as it says: observations are by far the longest part, and need no text.
 *
 * Started as: node bridge.js FOLDER_OF_POKEMON_SHOWDOWN fast|plain
 * First line in:  { format, maxTurns, lines, watching, teams: null or [[name, text], ...] }
 * First line out: { ready: { ... } } or { problem: why this can't be played }
 * A tick in:  { tick, start: [[row, seed, number], ...], act: [row, side, action, row, side, action, ...],
 *               stop: [row, ...] }, and for battles that are played elsewhere, of which only lines come here,
 *             { watch: [[row, side], ...], feed: [[row, [line, ...]], ...], decide: [row, ...] }
 * A tick out: { tick, battles: [Game.result, ...], choices: [[row, text], ...], errors, said, meters,
 *               bytes: how long the encoder's records are, which follow the line }
 */

const fs = require('fs');
const path = require('path');
const { previewChoices } = require('./actions');
const { Encoder } = require('./encode');
const { Game } = require('./game');
const { moveFacts } = require('./moves');
const { Watched } = require('./watched');

const NOTHING = Buffer.alloc(0);

/** What this process has used of a core. By the clock, writing would count whoever it wakes. */
function cpuMs() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

class Bridge {
  constructor(simulator) {
    this.simulator = simulator;
    this.rows = new Map();
    this.said = [];
    this.battles = [];
    this.errors = [];
    this.readingMs = 0; // of lines, within a tick, by the clock
    this.meters = {
      starts: 0, ticks: 0, bytesIn: 0, bytesOut: 0,
      simulatorMs: 0, encodingMs: 0, serialisationMs: 0, // of CPU; the last one is of messages
      unavailable: 0, invalid: 0, // choices that the simulator refused
      defaults: 0, // decisions that it had to make
    };
  }

  /** What can be known before the first battle. */
  open({ format, maxTurns, lines, teams, watching }) {
    const { Dex } = require(`${this.simulator}/dex`);
    const found = Dex.formats.get(format);
    if (!found.exists) return { problem: `the simulator knows no format ${format}` };
    if (found.gameType !== 'singles') return { problem: `${format} is played in ${found.gameType}, not singles` };
    if (!found.team && !teams && !watching) return { problem: `${format} needs teams: give a file or a folder of them` };
    this.Battle = require(`${this.simulator}/battle`).Battle;
    this.format = found;
    this.dex = Dex.forFormat(found);
    this.previews = previewChoices(this.dex, found);
    this.encoder = new Encoder(this.previews);
    this.maxTurns = maxTurns;
    this.lines = lines;
    this.teams = null;
    if (teams) {
      const { packed, problems } = this.validated(teams);
      if (problems.length) return { problem: problems.join('; ') };
      this.teams = packed;
    }
    const { actions, recordBytes } = this.encoder;
    const { previews, teams: packed } = this;
    const moves = lines ? moveFacts(this.dex) : null; // for people
    return { ready: { actions, recordBytes, previews, teams: packed, gen: this.dex.gen, moves } };
  }

  /** teams: [[name, text], ...], as people export them or packed */
  validated(teams) {
    const { Teams } = require(`${this.simulator}/teams`);
    const { TeamValidator } = require(`${this.simulator}/team-validator`);
    const validator = TeamValidator.get(this.format);
    const packed = [];
    const problems = [];
    for (const [name, text] of teams) {
      const team = Teams.import(text);
      const reasons = team?.length ? validator.validateTeam(team) : ['it is not a team'];
      if (reasons) problems.push(`${name}: ${reasons.join(' ')}`);
      else packed.push(Teams.pack(team));
    }
    return { packed, problems };
  }

  tick({ tick, start = [], act = [], stop = [], watch = [], feed = [], decide = [] }) {
    const began = performance.now();
    const before = cpuMs();
    const touched = new Set();
    const choices = [];
    for (const row of stop) this.stop(row);
    for (const [row, seed, number] of start) {
      this.stop(row);
      this.rows.set(row, new Game(this, row, seed, number));
      touched.add(row);
    }
    for (const [row, side] of watch) this.rows.set(row, new Watched(this.dex, this.previews, side));
    for (const [row, lines] of feed) this.feed(row, lines);
    for (let i = 0; i < act.length; i += 3) {
      const row = act[i];
      const game = this.rows.get(row);
      if (game instanceof Game) {
        game.act(act[i + 1], act[i + 2]);
        touched.add(row);
      } else choices.push([row, game.choose(act[i + 2])]);
    }
    for (const row of touched) this.rows.get(row).advance();
    const simulated = cpuMs();
    const reading = this.readingMs / (performance.now() - began);
    for (const row of touched) this.rows.get(row).report();
    for (const row of decide) this.decide(row, choices);
    const { meters } = this;
    this.readingMs = 0;
    meters.ticks++;
    meters.simulatorMs += (1 - reading) * (simulated - before);
    meters.encodingMs += reading * (simulated - before) + cpuMs() - simulated;
    return this.answer(tick, choices);
  }

  feed(row, lines) {
    try {
      for (const line of lines) this.rows.get(row).feed(line);
    } catch (error) {
      this.errors.push([row, String(error.message)]);
    }
  }

  /** What has happened in a watched battle, and the decision that is to be made in it. */
  decide(row, choices) {
    const watched = this.rows.get(row);
    const { side, tracker, request, refused } = watched;
    this.battles.push(watched.result(row));
    if (!request || request.wait || this.encoder.add(row, side, false, tracker, request, refused)) return;
    this.encoder.drop(); // nothing that we know of is left: the simulator chooses
    this.meters.defaults++;
    choices.push([row, 'default']);
  }

  stop(row) {
    this.rows.get(row)?.close?.();
    this.rows.delete(row);
  }

  answer(tick, choices) {
    const { battles, errors, said, meters, encoder } = this;
    this.battles = [];
    this.errors = [];
    this.said = [];
    const records = encoder.take();
    const answer = { tick, battles, choices, errors, said, meters, bytes: records.length };
    return { answer, records };
  }

  /** line: a message; says the answer */
  hear(line) {
    const before = cpuMs();
    const given = JSON.parse(line);
    const parsed = cpuMs();
    const { answer, records } = this.encoder ? this.tick(given) : { answer: this.open(given), records: NOTHING };
    const answered = cpuMs();
    this.meters.bytesIn += line.length + 1;
    const head = Buffer.from(`${JSON.stringify(answer)}\n`);
    this.meters.bytesOut += write(Buffer.concat([head, records]));
    this.meters.serialisationMs += parsed - before + cpuMs() - answered;
  }
}

/** Writing waits for the reader, so that no more than a tick is ever kept here. */
function write(bytes) {
  for (let sent = 0; sent < bytes.length; ) {
    try {
      sent += fs.writeSync(1, bytes, sent);
    } catch (error) {
      if (error.code === 'EPIPE') process.exit(0);
      if (error.code !== 'EAGAIN') throw error;
    }
  }
  return bytes.length;
}

function main(showdown, speed) {
  const simulator = path.join(path.resolve(showdown), 'dist', 'sim');
  if (speed === 'fast') require('./fast')(simulator);
  const bridge = new Bridge(simulator);
  let rest = '';
  process.stdin.setEncoding('utf8');
  process.stdin.on('data', chunk => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) bridge.hear(line);
  });
  process.stdin.on('end', () => process.exit(0));
  process.on('SIGINT', () => {}); // who started us decides when to stop
}

main(process.argv[2], process.argv[3]);
