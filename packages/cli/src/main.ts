#!/usr/bin/env node
/** The command `locks`: docs/command-line.md. */
import { format } from 'node:util';
import { runCli } from './run-cli.ts';
import { EXIT } from './exit-codes.ts';
import { shown } from './foreign-text.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // EPIPE: the reader of the output has closed the pipe, as `| head` does.
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  say(`the output cannot be written: ${error.message}`);
  process.exit(EXIT.io);
});

// A message that cannot be written must not end the process, which may hold a lock: the exit code says it too.
process.stderr.on('error', () => undefined);

// Warnings of adapters and clients may contain text of a server: `say()` makes it safe to show.
process.removeAllListeners('warning');
process.on('warning', (warning) => {
  const { name, message, code } = warning as NodeJS.ErrnoException;
  // The command `once` says this itself.
  if (code !== 'LOCKS_SLOT_AHEAD') say(`${name}: ${message}`);
});
console.warn = console.error = (...values: unknown[]) => say(format(...values));

process.exitCode = await runCli(process.argv.slice(2), {
  url: process.env['LOCKS_URL'],
  write: (text) => process.stdout.write(text),
  say,
});

function say(text: string): void {
  // `shown()` keeps the message on one line, whatever a lock's name, a label or a server's error contains.
  process.stderr.write(`locks: ${shown(text)}\n`);
}
