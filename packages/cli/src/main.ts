#!/usr/bin/env node
/** The command `locks`: docs/command-line.md. */
import { carryOut } from './carry-out.ts';
import { EXIT } from './exit-codes.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the output has seen enough, as with `| head`.
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  say(`the output cannot be written: ${error.message}`);
  process.exit(EXIT.io);
});

// A message that cannot be written must not end the process, which may hold a lock: the exit code says it too.
process.stderr.on('error', () => undefined);

process.exitCode = await carryOut(process.argv.slice(2), {
  url: process.env['LOCKS_URL'],
  write: (text) => process.stdout.write(text),
  say,
});

function say(text: string): void {
  process.stderr.write(`locks: ${text}\n`);
}
