'use strict';
/**
 * Actions: numbers that stand for choices, the same in every format.
 *
 * 0..3 a move, 4..7 the same move with the generation's gimmick, 8..13 a switch to a place in the request's
 * team (never to a name: a Ditto may have any), then one action for each way to answer a team preview.
 */

const MOVES = 4;
const TEAM = 6;
const GIMMICK = MOVES;
const SWITCH = 2 * MOVES;
const PREVIEW = SWITCH + TEAM;

/** All ordered ways to pick `count` of the places 1..6. */
function arrangements(count) {
  let found = [[]];
  for (let i = 0; i < count; i++) {
    const longer = [];
    for (const places of found) {
      for (let place = 1; place <= TEAM; place++) if (!places.includes(place)) longer.push([...places, place]);
    }
    found = longer;
  }
  return found;
}

/** How a format's team preview can be answered: lists of places; empty without a preview. */
function previewChoices(dex, format) {
  const rules = dex.formats.getRuleTable(format);
  const asks = [...rules.keys()].some(rule => dex.formats.get(rule).onTeamPreview) || format.onTeamPreview;
  if (!asks) return [];
  return arrangements(rules.pickedTeamSize || 1);
}

const hasFainted = pokemon => pokemon.condition.endsWith(' fnt');

/** The word that asks for the gimmick with a move, or '' if there is none now. */
function gimmick(active, move) {
  if (active.canTerastallize) return ' terastallize';
  if (active.canDynamax) return ' dynamax';
  if (active.canMegaEvo) return ' mega';
  if (active.canMegaEvoX) return ' megax';
  if (active.canMegaEvoY) return ' megay';
  if (active.canUltraBurst) return ' ultra';
  if (active.canZMove?.[move]) return ' zmove';
  return '';
}

/** Calls `allow` with every action that the request allows. */
function eachLegal(request, previews, allow) {
  const team = request.side.pokemon;
  if (request.teamPreview) {
    previews.forEach((places, i) => {
      if (places.every(place => place <= team.length)) allow(PREVIEW + i);
    });
    return;
  }
  const active = request.active?.[0];
  if (active) {
    active.moves.forEach((move, i) => {
      if (i >= MOVES || move.disabled) return;
      allow(i);
      if (gimmick(active, i)) allow(GIMMICK + i);
    });
    if (active.trapped) return;
  }
  const revives = Boolean(team[0].reviving);
  for (let place = 1; place < team.length && place < TEAM; place++) {
    if (!team[place].active && hasFainted(team[place]) === revives) allow(SWITCH + place);
  }
}

/** The choice, in the simulator's words, that an action stands for. */
function choice(request, previews, action) {
  if (action >= PREVIEW) return `team ${previews[action - PREVIEW].join('')}`;
  if (action >= SWITCH) return `switch ${action - SWITCH + 1}`;
  if (action >= GIMMICK) return `move ${action - GIMMICK + 1}${gimmick(request.active[0], action - GIMMICK)}`;
  return `move ${action + 1}`;
}

module.exports = { PREVIEW, SWITCH, TEAM, choice, eachLegal, gimmick, hasFainted, previewChoices };
