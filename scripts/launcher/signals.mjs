// Own code: npm passes no SIGTERM on, and ends by SIGKILL without a word to its script.
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

const passedOn = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
// npm passes a Ctrl-C on to us although the terminal has sent it too: twice in a moment is still one Ctrl-C.
const onePressMs = 1_000;
const graceMs = 10_000;
const parentLookMs = 250;

/** @type {{ signal: NodeJS.Signals, at: number } | undefined} */
let received;
/** @type {import('node:child_process').ChildProcess | undefined} */
let current;

/** Thrown between two children once a signal has come. */
export class Interrupted extends Error {
  /** @param {NodeJS.Signals} signal */
  constructor(signal) {
    super(`stopped by ${signal}`);
    this.exitCode = 128 + constants.signals[signal];
  }
}

export function listenForSignals() {
  for (const signal of passedOn) process.on(signal, () => receive(signal));
  if (process.env['npm_lifecycle_event'] !== undefined) stopWithNpm();
}

/**
 * npm runs us in a shell. An npm that gets SIGTERM takes its shell along and does not tell us; one that gets SIGKILL
 * leaves the shell too (tried: npm 11). A process whose parent ends gets another parent.
 */
function stopWithNpm() {
  const shell = process.ppid;
  const npm = parentOf(shell);
  const poll = setInterval(() => {
    if (process.ppid === shell && parentOf(shell) === npm) return;
    clearInterval(poll);
    receive('SIGTERM');
  }, parentLookMs);
  poll.unref();
}

/**
 * The parent of another process; `undefined` where there is no /proc.
 * @param {number} pid
 */
function parentOf(pid) {
  try {
    // The second field, the name in parentheses, may contain anything.
    return Number(/^.*\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1]);
  } catch {
    return undefined;
  }
}

export function throwIfInterrupted() {
  if (received) throw new Interrupted(received.signal);
}

/**
 * From now on signals go to this child and its group; one that came before the child was there is sent at once.
 * @param {import('node:child_process').ChildProcess} child
 */
export function passSignalsTo(child) {
  current = child;
  if (received) passOn(child, received.signal);
  child.once('exit', () => {
    if (current === child) current = undefined;
  });
}

/** @param {NodeJS.Signals} signal */
function receive(signal) {
  const now = Date.now();
  if (!received) {
    received = { signal, at: now };
    if (current) passOn(current, signal);
  } else if (now - received.at > onePressMs && current) {
    signalGroup(current, 'SIGKILL');
  }
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function passOn(child, signal) {
  signalGroup(child, signal);
  const giveUp = setTimeout(() => signalGroup(child, 'SIGKILL'), graceMs);
  child.once('exit', () => clearTimeout(giveUp));
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @param {NodeJS.Signals} signal
 */
function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    if (process.platform === 'win32') child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // The group is gone already.
  }
}
