// Connect four: discs, and a click anywhere in a column drops one there.
import { Board } from "/web/board.js";

const column = (cell, view) => cell % view.columns.length;

export default (root, play) =>
  new Board(root, play, {
    round: true,
    pick: (cell, view) => view.moves.find((move) => column(move[1], view) === column(cell, view)),
  });
