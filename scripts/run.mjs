#!/usr/bin/env node
// The one entry of every root script. Plain JavaScript without dependencies: it runs on a host that has nothing but
// Node 20 and npm, and brings the rest (pnpm, the packages, the workspace's Node, servers).
import { commands, usage } from './launcher/commands.mjs';
import { Interrupted, listenForSignals } from './launcher/signals.mjs';
import { say } from './launcher/say.mjs';
import { StepFailed } from './launcher/step-failed.mjs';

const [name = '', ...given] = process.argv.slice(2);
// `pnpm test -- types` hands the `--` on to us, `npm test -- types` does not.
const args = given[0] === '--' ? given.slice(1) : given;
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;

if (!command) {
  say(name === '' ? usage : `unknown command "${name}"\n${usage}`);
  process.exit(2);
}

listenForSignals();
try {
  process.exitCode = await command(args);
} catch (error) {
  if (error instanceof Interrupted) {
    process.exitCode = error.exitCode;
  } else if (error instanceof StepFailed) {
    say(error.message);
    process.exitCode = error.exitCode;
  } else {
    throw error;
  }
}
