/**
 * The guardian of a command that `locks run` runs: a process of its own, so that the command also ends where `locks` was
 * killed or stopped.
 */
import { createInterface } from 'node:readline';
import { CommandEnd } from './command-end.ts';
import { type GuardianMessage, type GuardianReport, machineNow } from './messages.ts';

let until = Number.POSITIVE_INFINITY;
let isInner = false;
let isDone = false;

const end = new CommandEnd({
  leftMs: () => until - machineNow(),
  onEnd: () => report('ending'),
  onKill: () => process.exit(),
});

// Signals that end the terminal or the command line must not end the guardian first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => undefined);
process.stdout.on('error', () => undefined);

const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => receive(JSON.parse(line) as GuardianMessage));
lines.on('close', () => {
  if (isDone) return;
  // `locks` is gone. Its lease may be valid for long, but nobody renews it.
  end.ask();
  // An outer guardian, whose lease is over, may have killed `locks`.
  if (isInner || until === Number.POSITIVE_INFINITY) end.kill();
  else end.plan();
});
report('ready');

function receive(message: GuardianMessage): void {
  switch (message.kind) {
    case 'guard':
      isInner = message.isInner;
      end.guard(message);
      return;
    case 'group':
      end.group = message.group;
      return;
    case 'until':
      until = message.at ?? Number.POSITIVE_INFINITY;
      end.plan();
      return;
    case 'lost':
      end.ask();
      end.kill();
      return;
    case 'done':
      isDone = true;
      report('done');
      if (!end.hasBegun) process.exit();
      void end.finish().then(() => process.exit());
  }
}

function report(what: GuardianReport): void {
  process.stdout.write(`${what}\n`);
}
