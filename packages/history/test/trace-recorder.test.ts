import { channel } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { parseTrace, readTrace, recordTrace } from '../src/index.ts';

const protocol = channel('locks:protocol');
const client = { backend: 'memory', capabilities: { tenure: 'lease', order: 'fifo', fencing: 'durable' } };
const acquisition = { name: 'stock', acquisitionId: 'x', mode: { kind: 'exclusive' }, fencingToken: 7n };

function publish(step: object): void {
  protocol.publish({ client, at: 5, ...step });
}

/** A stream that takes nothing until it is told to. */
class SlowStream extends Writable {
  text = '';
  #go: (() => void) | undefined;
  isSlow = true;

  constructor() {
    super({ highWaterMark: 1 });
  }

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString();
    if (this.isSlow) this.#go = done;
    else done();
  }

  go(): void {
    this.isSlow = false;
    this.#go?.();
  }
}

test('nobody listens to the protocol before and after a recording', async () => {
  expect(protocol.hasSubscribers).toBe(false);
  const stream = new SlowStream();
  stream.go();
  const trace = recordTrace(stream);
  expect(protocol.hasSubscribers).toBe(true);
  await trace.close();
  expect(protocol.hasSubscribers).toBe(false);
});

test('messages become lines of a trace, with tokens as texts and times on the clock of the machine', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'trace.jsonl');
  const trace = recordTrace(file, { store: 'shop' });
  publish({ step: 'believes', acquisition, until: 105, renews: true });
  publish({ step: 'call', call: 1, method: 'abandon', acquisitions: [acquisition] });
  publish({ step: 'believes', acquisition, until: Number.POSITIVE_INFINITY, renews: true });
  await trace.close();
  const { lines, malformed } = readTrace(file);
  expect(malformed).toEqual([]);
  expect(lines.map(({ event }) => event.step)).toEqual([
    'begin',
    'client',
    'believes',
    'call',
    'believes',
    'end',
  ]);
  const [, told, believes, call, endless] = lines.map(({ event }) => event);
  expect(told).toMatchObject({
    client: 1,
    store: 'shop',
    backend: 'memory',
    capabilities: client.capabilities,
  });
  expect(believes).toMatchObject({
    acquisition: { name: 'stock', id: 'x', token: '7' },
    until: 105,
    renews: true,
  });
  const { time = 0, endsAt } = believes as { time?: number; endsAt?: number };
  expect(endsAt).toBeCloseTo(time + 100, 2);
  expect(call).toMatchObject({ method: 'abandon', acquisitions: [{ id: 'x' }] });
  expect(endless).not.toHaveProperty('until');
});

test('a name of any characters is read as it was', async () => {
  const stream = new SlowStream();
  stream.go();
  const trace = recordTrace(stream);
  const name = 'größe "1" 漢 \u{1F600} \n';
  publish({ step: 'gives-up', acquisition: { ...acquisition, name } });
  await trace.close();
  const { lines } = parseTrace(stream.text);
  expect(lines.find(({ event }) => event.step === 'gives-up')?.event).toMatchObject({
    acquisition: { name },
  });
});

test('a name is hashed where that was asked for, the same name to the same hash', async () => {
  const stream = new SlowStream();
  stream.go();
  const trace = recordTrace(stream, { hashNames: true });
  for (const name of ['stock', 'stock', 'other'])
    publish({ step: 'gives-up', acquisition: { ...acquisition, name } });
  await trace.close();
  expect(stream.text).not.toContain('stock');
  const names = parseTrace(stream.text).lines.flatMap(({ event }) =>
    'acquisition' in event ? [event.acquisition.name] : [],
  );
  expect(names[0]).toBe(names[1]);
  expect(names[2]).not.toBe(names[0]);
});

test('what a slow stream does not take is kept up to a limit, and what is dropped is counted', async () => {
  const stream = new SlowStream();
  const trace = recordTrace(stream, { mostLines: 3 });
  for (let count = 0; count < 10; count += 1) publish({ step: 'gives-up', acquisition });
  await sleep(100);
  expect(trace.dropped).toBe(7);
  stream.go();
  await trace.close();
  const { lines } = parseTrace(stream.text);
  expect(lines.filter(({ event }) => event.step === 'gives-up')).toHaveLength(3);
  expect(lines.find(({ event }) => event.step === 'dropped')?.event).toMatchObject({ lines: 7 });
  expect(lines.at(-1)?.event.step).toBe('end');
});

test('a file that cannot be written harms no lock, and fails the close', async () => {
  const trace = recordTrace('/no/such/folder/trace.jsonl');
  publish({ step: 'gives-up', acquisition });
  await expect(trace.close()).rejects.toThrow('ENOENT');
});

test('lines are appended, so that a program that starts again goes on in its file', async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, 'trace.jsonl');
  for (let run = 0; run < 2; run += 1) {
    const trace = recordTrace(file);
    publish({ step: 'gives-up', acquisition });
    await trace.close();
  }
  expect(
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.includes('"begin"')),
  ).toHaveLength(2);
});

test.each([[undefined], [''], [{}]])('a target that is none is refused: %o', (target) => {
  expect(() => recordTrace(target as never)).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
});

async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), 'trace-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}
