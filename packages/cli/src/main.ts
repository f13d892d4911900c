#!/usr/bin/env node
/** The command `locks`: docs/command-line.md. */
import { format } from 'node:util';
import { carryOut } from './carry-out.ts';
import { EXIT } from './exit-codes.ts';
import { shown } from './foreign-text.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // Whoever read the output has seen enough, as with `| head`.
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  say(`the output cannot be written: ${error.message}`);
  process.exit(EXIT.io);
});

// A message that cannot be written must not end the process, which may hold a lock: the exit code says it too.
process.stderr.on('error', () => undefined);

// Adapters and clients warn of what a server said.
process.removeAllListeners('warning');
process.on('warning', ({ name, message }) => say(`${name}: ${message}`));
console.warn = console.error = (...values: unknown[]) => say(format(...values));

process.exitCode = await carryOut(process.argv.slice(2), {
  url: process.env['LOCKS_URL'],
  write: (text) => process.stdout.write(text),
  say,
});

function say(text: string): void {
  // One line, whatever stands in the name of a lock, a label or the error of a server.
  process.stderr.write(`locks: ${shown(text)}\n`);
}
