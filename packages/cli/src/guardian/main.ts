/**
 * The guardian of a command that `locks run` runs: a process of its own, so that the command also ends where `locks` was
 * killed or stopped. It ends the command before the store can give the lock to anyone else: SIGTERM while a part of the lease
 * is left, SIGKILL at its end.
 */
import { createInterface } from 'node:readline';
import { type Guarded, type GuardianMessage, type GuardianReport, machineNow } from './messages.ts';
import { signalAll } from './processes.ts';

let guarded: Guarded | undefined;
let group: number | undefined;
let until = Number.POSITIVE_INFINITY;
let termSent = false;
let timer: NodeJS.Timeout | undefined;

// What ends the terminal or the command line must not end the guardian first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => receive(JSON.parse(line) as GuardianMessage));
lines.on('close', () => {
  // `locks` is gone. Its lease may be valid for long, but nobody renews it.
  terminate();
  if (until === Number.POSITIVE_INFINITY) kill();
  else plan();
});
report('ready');

function receive(message: GuardianMessage): void {
  switch (message.kind) {
    case 'guard':
      guarded = message;
      plan();
      return;
    case 'group':
      group = message.group;
      return;
    case 'until':
      until = message.at ?? Number.POSITIVE_INFINITY;
      plan();
      return;
    case 'lost':
      terminate();
      kill();
      return;
    case 'done':
      process.exit();
  }
}

/** Sets the timer for what comes next. A process that was stopped finds its time over when it goes on. */
function plan(): void {
  clearTimeout(timer);
  if (guarded === undefined || until === Number.POSITIVE_INFINITY) return;
  const { termBeforeMs, killBeforeMs } = guarded;
  const leftMs = until - machineNow();
  if (leftMs <= killBeforeMs) return kill();
  if (leftMs <= termBeforeMs) terminate();
  const nextMs = leftMs - (termSent ? killBeforeMs : termBeforeMs);
  timer = setTimeout(plan, Math.min(nextMs, 1_000));
}

function terminate(): void {
  if (termSent || guarded === undefined) return;
  termSent = true;
  signalAll(group, guarded.mark, 'SIGTERM');
  report('terminated');
}

function kill(): void {
  if (guarded !== undefined) signalAll(group, guarded.mark, 'SIGKILL');
  process.exit();
}

function report(what: GuardianReport): void {
  process.stdout.write(`${what}\n`);
}
