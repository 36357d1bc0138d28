'use strict';
/** Facts of moves that people choose by. */

/** Id -> [name, type, base power, accuracy in percent, category]; accuracy is 0 for moves that can't miss. */
function moveFacts(dex) {
  const facts = {};
  for (const move of dex.moves.all()) {
    const accuracy = move.accuracy === true ? 0 : move.accuracy;
    facts[move.id] = [move.name, move.type, move.basePower, accuracy, move.category];
  }
  return facts;
}

module.exports = { moveFacts };
