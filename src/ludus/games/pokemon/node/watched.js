'use strict';
/** Watched: a battle that is played elsewhere, e.g. on a server, as one of its seats is told of it. */

const { SWITCH, PREVIEW, choice } = require('./actions');
const { Facts } = require('./facts');
const { SIDES, Tracker } = require('./tracker');

const RUNNING = 0;
const ENDED = 1;

class Watched {
  /** side: p1 or p2 */
  constructor(dex, previews, side) {
    this.previews = previews;
    this.tracker = new Tracker(dex, side);
    this.side = this.tracker.own;
    this.request = null;
    this.refused = new Set(); // actions that the simulator has taken back
    this.tried = -1;
    this.facts = new Facts();
    this.names = ['', ''];
    this.state = RUNNING;
    this.winner = -1;
  }

  feed(line) {
    if (line.startsWith('|request|')) return this.ask(line.slice('|request|'.length));
    if (line.startsWith('|error|[')) return this.refuse();
    const parts = line.split('|');
    if (parts[1] === 'player' && parts[3]) this.names[SIDES[parts[2]]] = parts[3];
    else if (parts[1] === 'win' || parts[1] === 'tie') this.end(parts[2]);
    this.facts.note(parts);
    this.tracker.take(parts);
  }

  ask(text) {
    this.request = text ? JSON.parse(text) : null;
    if (!this.request) return;
    if (!this.request.update) this.refused.clear();
    this.tracker.takeRequest(this.request);
  }

  /** The choice, in the simulator's words, that an action stands for. */
  choose(action) {
    this.tried = action;
    this.countSwitch(1);
    return choice(this.request, this.previews, action);
  }

  refuse() {
    this.refused.add(this.tried);
    this.countSwitch(-1);
  }

  countSwitch(by) {
    const isSwitch = this.tried >= SWITCH && this.tried < PREVIEW;
    if (isSwitch && this.request.active) this.facts.switched[this.side] += by;
  }

  end(winner) {
    this.state = ENDED;
    this.winner = this.names.indexOf(winner);
    this.request = null;
  }

  /** As `Game.result`; of the opponent's hit points, what is shown. */
  result(row) {
    const { fainted, failed, switched } = this.facts;
    const lost = this.tracker.teams.map(team => team.reduce((sum, pokemon) => sum + 1 - pokemon.hp, 0));
    return [row, this.state, this.winner, this.tracker.turn, ...fainted, ...lost, ...failed, ...switched];
  }
}

module.exports = { Watched };
