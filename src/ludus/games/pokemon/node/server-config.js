'use strict';
/** Settings of a local server, beside the simulator's defaults: nobody outside this machine reaches it. */

exports.bindaddress = '127.0.0.1';
exports.repl = false;
exports.watchconfig = false;
exports.crashguard = true;
exports.reportjoins = false;
exports.subprocesses = {
  network: 1, simulator: 1, validator: 1, verifier: 0, localartemis: 0, remoteartemis: 0, friends: 0,
  chatdb: 0, modlog: 0, pm: 0, datasearch: 0, battlesearch: 0,
};
