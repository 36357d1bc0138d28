'use strict';
/** Facts: what happened in a battle that rewards are made of, counted from its lines. */

const { SIDES } = require('./tracker');

class Facts {
  constructor() {
    this.fainted = [0, 0];
    this.failed = [0, 0];
    this.switched = [0, 0]; // by choice: whoever takes choices counts them
    this.mover = -1; // who moved last, until it is known to have failed
  }

  /** parts: a line split at '|' */
  note(parts) {
    switch (parts[1]) {
      case 'move':
        this.mover = SIDES[parts[2].slice(0, 2)];
        break;
      case 'faint':
        this.fainted[SIDES[parts[2].slice(0, 2)]]++;
        break;
      case '-immune':
      case '-fail':
      case '-notarget':
        if (this.mover >= 0) this.failed[this.mover]++;
        this.mover = -1;
        break;
      case 'turn':
        this.mover = -1;
    }
  }
}

module.exports = { Facts };
