/** The main module of a process with a Web Locks client of its own. */
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Harness } from '@locks/core/conformance';
import { machineNow, serveCalls } from '@locks/core/conformance/process';
import { webLocks } from '@locks/web-locks';
import type { ClientSetup, RequestOutcome, WebLocksCommands } from './commands.ts';

const { harness, options } = JSON.parse(process.argv[2] as string) as ClientSetup;
const { default: store } = (await import(harness)) as { default: Harness };

interface Running {
  readonly outcome: Promise<RequestOutcome>;
  readonly granted: Promise<{ mode: string | null; at: number }>;
  readonly controller: AbortController;
  release(value: unknown): void;
}

const locks = webLocks(await store.createBackend(), options);
const running = new Map<string, Running>();

const commands: WebLocksCommands = {
  async clientId() {
    return locks.clientId;
  },
  async request(key, name, wanted = {}) {
    const controller = new AbortController();
    const exclusive = wanted.ifAvailable === true || wanted.steal === true;
    const all = exclusive ? wanted : { ...wanted, signal: controller.signal };
    let release!: (value: unknown) => void;
    const released = new Promise<unknown>((resolve) => (release = resolve));
    let tellGranted!: (grant: { mode: string | null; at: number }) => void;
    const granted = new Promise<{ mode: string | null; at: number }>((resolve) => (tellGranted = resolve));
    const requested = locks.request(name, all, (lock) => {
      tellGranted({ mode: lock?.mode ?? null, at: machineNow() });
      return lock === null ? 'not available' : released;
    });
    const outcome = outcomeOf(requested);
    // A failed request is never granted.
    const answered = Promise.race([
      granted,
      outcome.then(({ error }) =>
        error === undefined ? granted : Promise.reject(new Error(`${error.name}: ${error.message}`)),
      ),
    ]);
    answered.catch(() => {});
    running.set(key, { outcome, granted: answered, controller, release });
  },
  async granted(key) {
    return find(key).granted;
  },
  async release(key, value) {
    find(key).release(value);
  },
  async abortAtOnce(name) {
    const controller = new AbortController();
    let called = false;
    const requested = locks.request(name, { signal: controller.signal }, () => {
      called = true;
    });
    controller.abort('aborted');
    return { ...(await outcomeOf(requested)), called };
  },
  async abort(key) {
    find(key).controller.abort('aborted');
  },
  async outcome(key) {
    return find(key).outcome;
  },
  async query() {
    return locks.query();
  },
  async count(name, file, times) {
    for (let round = 0; round < times; round += 1) {
      await locks.request(name, async () => {
        const before = Number(await readFile(file, 'utf8'));
        await sleep(Math.random() * 3);
        await writeFile(file, String(before + 1));
      });
    }
  },
};

async function outcomeOf(requested: Promise<unknown>): Promise<RequestOutcome> {
  try {
    return { value: await requested, at: machineNow() };
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: 'thrown', message: String(error) };
    return { error: { name, message }, at: machineNow() };
  }
}

function find(key: string): Running {
  const found = running.get(key);
  if (found === undefined) throw new Error(`There is no request ${key} in this process.`);
  return found;
}

serveCalls(commands);
