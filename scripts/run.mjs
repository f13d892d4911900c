#!/usr/bin/env node
// The one entry of every root script. Plain JavaScript without dependencies: it runs on a host that has nothing but
// Node 20 and npm, and brings the rest (pnpm, the packages, the workspace's Node, servers).
import { run, usage } from './launcher/commands.mjs';
import { Interrupted, listenForSignals } from './launcher/signals.mjs';
import { say } from './launcher/say.mjs';
import { StepFailed } from './launcher/step-failed.mjs';

const [name = '', ...given] = process.argv.slice(2);
// `pnpm test -- types` hands the `--` on to us, `npm test -- types` does not.
const args = given[0] === '--' ? given.slice(1) : given;

listenForSignals();
try {
  process.exitCode = await run(name, args);
  if (process.exitCode === undefined) {
    say(name === '' ? usage : `unknown command "${name}"\n${usage}`);
    process.exitCode = 2;
  }
} catch (error) {
  if (!(error instanceof Interrupted) && !(error instanceof StepFailed)) throw error;
  if (error instanceof StepFailed) say(error.message);
  process.exitCode = error.exitCode;
}
