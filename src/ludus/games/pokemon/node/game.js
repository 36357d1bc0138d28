'use strict';
/**
 * Game: one row's battles in this process, one after the other, on the real simulator.
 *
 * Seeds come from the row's own text and the battle's number, so a battle can be played again alone.
 */

const crypto = require('crypto');
const { SWITCH, PREVIEW, choice } = require('./actions');
const { Facts } = require('./facts');
const { Tracker } = require('./tracker');

const RUNNING = 0;
const ENDED = 1;
const CUT_OFF = 2;
const BROKEN = 3;
const PLAYERS = ['p1', 'p2'];

/** 64 bits for one purpose, as the simulator's seed of its fifth generation's generator. */
function seedFor(seed, game, purpose) {
  const digest = crypto.createHash('sha256').update(`${seed}/${game}/${purpose}`).digest('hex');
  return `gen5,${digest.slice(0, 16)}`;
}

function drawnTeam(teams, seed, game, purpose) {
  const digest = crypto.createHash('sha256').update(`${seed}/${game}/${purpose}/team`).digest();
  return teams[digest.readUInt32LE(0) % teams.length];
}

class Game {
  /** table: what all games of this process share (format, encoder, Battle, teams, turn cap, lines) */
  constructor(table, row, seed, number) {
    Object.assign(this, { table, row, seed, number });
    this.start();
  }

  start() {
    const { Battle, dex, format, teams } = this.table;
    this.trackers = PLAYERS.map(player => new Tracker(dex, player));
    this.requests = [null, null];
    this.asked = [false, false]; // who must decide and hasn't been told yet
    this.refused = [new Set(), new Set()];
    this.facts = new Facts();
    this.table.meters.starts++;
    this.broken = '';
    this.battle = null;
    const send = (type, data) => this.receive(type, data);
    this.attempt(() => {
      const battle = new Battle({ formatid: format.id, seed: seedFor(this.seed, this.number, 'battle'), send });
      for (const player of PLAYERS) {
        const team = teams ? drawnTeam(teams, this.seed, this.number, player) : undefined;
        battle.setPlayer(player, { name: player, team, seed: seedFor(this.seed, this.number, player) });
      }
      for (const side of battle.sides) this.takeRequestsOf(side);
      this.battle = battle;
      battle.sendUpdates();
    });
  }

  /** Have requests handed over as they are, instead of as text. */
  takeRequestsOf(side) {
    side.emitRequest = (request = side.activeRequest, updated = false) => {
      if (updated) request.update = true;
      side.activeRequest = request;
      this.requests[side.n] = request;
      this.asked[side.n] = !request.wait;
      if (!updated) this.refused[side.n].clear();
      this.trackers[side.n].takeRequest(request);
      if (this.table.lines) this.say(side.n, `|request|${JSON.stringify(request)}`);
    };
  }

  /** Whatever a battle throws ends it alone. */
  attempt(play) {
    try {
      play();
    } catch (error) {
      this.broken = String(error?.message ?? error).split('\n')[0];
    }
  }

  act(side, action) {
    const request = this.requests[side];
    if (this.broken || !request || request.wait || this.battle.ended) return;
    const text = choice(request, this.table.previews, action);
    this.attempt(() => {
      if (this.battle.choose(PLAYERS[side], text)) {
        if (request.active && action >= SWITCH && action < PREVIEW) this.facts.switched[side]++;
        return;
      }
      this.refused[side].add(action);
      this.asked[side] = true;
    });
  }

  /** type: the simulator's kind of message; data: lines of an update, or text */
  receive(type, data) {
    if (type === 'sideupdate') return this.countRefusal(data);
    if (type !== 'update') return;
    const began = performance.now();
    this.readLines(data);
    this.table.readingMs += performance.now() - began;
  }

  /** Unavailable: hidden until it was tried, as with trapping. Invalid: a mistake of ours. */
  countRefusal(text) {
    const { meters } = this.table;
    if (text.includes('|error|[Unavailable choice]')) meters.unavailable++;
    else if (text.includes('|error|')) meters.invalid++;
  }

  readLines(data) {
    const lines = this.table.lines;
    for (let i = 0; i < data.length; i++) {
      const line = data[i];
      if (!line.startsWith('|split|p')) {
        const parts = line.split('|');
        this.facts.note(parts);
        for (const tracker of this.trackers) tracker.take(parts);
        if (lines) for (const channel of [0, 1, 2]) this.say(channel, line);
        continue;
      }
      const side = Number(line[8]) - 1;
      const secret = data[++i];
      const shared = data[++i];
      const parts = secret.split('|');
      this.facts.note(parts);
      this.trackers[side].take(parts);
      if (shared) this.trackers[1 - side].take(shared.split('|'));
      if (lines) {
        this.say(side, secret);
        this.say(2, secret);
        if (shared) this.say(1 - side, shared);
      }
    }
  }

  /** channel: the seat that may see the line, or 2 for everything */
  say(channel, line) {
    this.table.said.push([this.row, this.number, channel, line]);
  }

  /** After all choices of a tick. A battle that is over is followed by the next. */
  advance() {
    if (!this.broken) this.attempt(() => this.battle.sendUpdates());
    const state = this.state();
    this.tell(this.result(state));
    if (this.broken) this.table.errors.push([this.row, this.broken]);
    if (state === RUNNING) return;
    if (state === CUT_OFF) for (const side of [0, 1]) this.ask(side, true);
    this.close();
    this.number++;
    this.start();
    if (this.broken) throw new Error(`no battle can be started: ${this.broken}`);
  }

  /** A row has one result in each answer. After an end, the next battle's first one waits for the next tick. */
  tell(result) {
    const { battles } = this.table;
    const earlier = battles.findIndex(one => one[0] === this.row);
    if (earlier < 0) battles.push(result);
    else if (battles[earlier][1] === RUNNING) battles[earlier] = result;
    else if (result[1] !== RUNNING) throw new Error('a battle was over as soon as it began');
  }

  /** The decisions that are to be made next. */
  report() {
    for (const side of [0, 1]) if (this.asked[side]) this.ask(side, false);
  }

  state() {
    if (this.broken) return BROKEN;
    if (this.battle.ended) return ENDED;
    const between = this.battle.requestState === 'move' && this.asked[0] && this.asked[1];
    return between && this.battle.turn > this.table.maxTurns ? CUT_OFF : RUNNING;
  }

  ask(side, last) {
    this.asked[side] = false;
    const { encoder } = this.table;
    const legal = encoder.add(this.row, side, last, this.trackers[side], this.requests[side], this.refused[side]);
    if (legal || last) return;
    // Nothing that we know of is left: let the simulator choose, which may end the turn.
    encoder.drop();
    this.table.meters.defaults++;
    this.attempt(() => this.battle.choose(PLAYERS[side], 'default'));
    this.advance();
    this.report();
  }

  /** row, state, winner, turns, and for each seat: fainted, hit points lost, failed moves, switches */
  result(state) {
    const { fainted, failed, switched } = this.facts;
    const winner = this.battle?.winner ? PLAYERS.indexOf(this.battle.winner) : -1;
    const lost = [0, 1].map(side => this.healthLost(side));
    return [this.row, state, winner, this.battle?.turn ?? 0, ...fainted, ...lost, ...failed, ...switched];
  }

  healthLost(side) {
    let lost = 0;
    for (const pokemon of this.battle?.sides[side]?.pokemon ?? []) lost += 1 - pokemon.hp / pokemon.maxhp;
    return Math.round(lost * 1e4) / 1e4;
  }

  close() {
    if (this.battle && !this.broken) this.battle.destroy();
    this.battle = null;
  }
}

module.exports = { Game };
