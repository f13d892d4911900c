import { createLocks, type FencedLockManager } from '@locks/core';
import { memoryTestBackend } from '@locks/memory';
import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { traceLocks } from '../src/index.ts';
import { inCircle } from './in-circle.ts';

const exporter = new InMemorySpanExporter();
const tracerProvider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
const tracer = tracerProvider.getTracer('test');
const contexts = new AsyncLocalStorageContextManager().enable();
let locks: FencedLockManager;
let stop: () => void;

beforeAll(() => {
  context.setGlobalContextManager(contexts);
});
afterAll(async () => {
  context.disable();
  await tracerProvider.shutdown();
});
beforeEach(() => {
  exporter.reset();
  locks = createLocks(memoryTestBackend());
  stop = traceLocks({ tracerProvider });
});
afterEach(async () => {
  stop();
  await locks.close();
});

function spans(name: string): ReadableSpan[] {
  return exporter.getFinishedSpans().filter((span) => span.name === name);
}

function span(name: string): ReadableSpan {
  const [found, ...more] = spans(name);
  expect(more).toEqual([]);
  return found as ReadableSpan;
}

function parentOf(name: string): string | undefined {
  const id = span(name).parentSpanContext?.spanId;
  return exporter.getFinishedSpans().find((other) => other.spanContext().spanId === id)?.name;
}

test('the spans lie in the context of their caller, and the work in that of its run', async () => {
  await tracer.startActiveSpan('request', async (request) => {
    await locks.lock('a').run(async () => {
      await Promise.resolve();
      tracer.startSpan('work').end();
    });
    tracer.startSpan('after').end();
    request.end();
  });
  expect(parentOf('lock.run')).toBe('request');
  expect(parentOf('lock.acquire')).toBe('lock.run');
  expect(parentOf('work')).toBe('lock.run');
  expect(parentOf('lock.release')).toBe('lock.run');
  expect(parentOf('after')).toBe('request');
});

test('an acquire has the token and the time that it waited, and its run has them too', async () => {
  let token: bigint | undefined;
  const lease = await locks.lock('a').acquire();
  exporter.reset();
  const running = locks.lock('a').run(async ({ fencingToken }) => {
    token = fencingToken;
    await locks.lock('b').run(() => {});
  });
  await vi.waitFor(async () => expect((await locks.inspect('a')).waiters).toHaveLength(1));
  await new Promise((resolve) => setTimeout(resolve, 30));
  await lease.release();
  await running;
  const told = { 'lock.fencing_token': String(token) };
  const own = spans('lock.acquire').find(({ attributes }) => Number(attributes['lock.wait.duration']) > 0.02);
  expect(own?.attributes).toMatchObject({
    ...told,
    'lock.backend': 'memory',
    'lock.mode': 'exclusive',
    'lock.outcome': 'acquired',
  });
  const runs = spans('lock.run').filter(({ attributes }) => Number(attributes['lock.wait.duration']) > 0.02);
  expect(runs.map(({ attributes }) => attributes)).toMatchObject([told]);
  const released = spans('lock.release').map(({ attributes }) => attributes['lock.fencing_token']);
  expect(released).toContain(String(token));
});

test('a failure has its code and no message, and no name of a lock is exported', async () => {
  const lease = await locks.lock('secret').acquire();
  exporter.reset();
  await expect(locks.lock('secret').acquire({ waitMs: 10 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  const { attributes, status, events } = span('lock.acquire');
  expect(attributes).toMatchObject({ 'lock.outcome': 'timeout', 'error.type': 'LOCK_TIMEOUT' });
  expect(status).toEqual({ code: SpanStatusCode.ERROR });
  expect(events).toEqual([]);
  expect(JSON.stringify([attributes, status])).not.toContain('secret');
  await lease.release();
});

test('a tryAcquire that gets nothing, and an acquire that is aborted, are no errors', async () => {
  const lease = await locks.lock('a').acquire();
  exporter.reset();
  expect(await locks.lock('a').tryAcquire()).toBeUndefined();
  expect(span('lock.acquire')).toMatchObject({
    attributes: { 'lock.outcome': 'contended' },
    status: { code: SpanStatusCode.UNSET },
  });
  exporter.reset();
  const signal = AbortSignal.timeout(10);
  await expect(locks.lock('a').acquire({ signal })).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(span('lock.acquire')).toMatchObject({
    attributes: { 'lock.outcome': 'aborted', 'error.type': 'TimeoutError' },
    status: { code: SpanStatusCode.UNSET },
  });
  await lease.release();
});

test('an error of the work is that of the run, and not of the release', async () => {
  await expect(
    locks.lock('a').run(() => {
      throw new TypeError('no such sku');
    }),
  ).rejects.toThrow('no such sku');
  expect(span('lock.run')).toMatchObject({
    attributes: { 'error.type': 'TypeError' },
    status: { code: SpanStatusCode.ERROR },
  });
  expect(span('lock.release').status.code).toBe(SpanStatusCode.UNSET);
});

test('groups are those of groupOf, and a span that has begun ends after the stop', async () => {
  stop();
  stop = traceLocks({ tracerProvider, groupOf: (name) => name.split(':', 1)[0] });
  await locks.lock('order:7').run(() => stop());
  expect(span('lock.run').attributes).toMatchObject({ 'lock.group': 'order' });
  expect(spans('lock.release')).toEqual([]);
  exporter.reset();
  await locks.lock('order:8').run(() => {});
  expect(exporter.getFinishedSpans()).toEqual([]);
});

test('locks work as ever where no tracer is there', async () => {
  stop();
  stop = traceLocks();
  expect(await locks.lock('a').run(() => trace.getActiveSpan()?.isRecording() ?? false)).toBe(false);
});

test.each([{ tracerProvider: {} }, { groupOf: 1 }, { names: true }])(
  'options that mean nothing are refused: %o',
  (options) => {
    expect(() => traceLocks(options as object)).toThrow(
      expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
    );
  },
);

test('the span of an acquire that was in a circle has an event with its length, and no name', async () => {
  await inCircle(locks);
  const events = spans('lock.acquire').flatMap((one) => one.events);
  expect(events).toMatchObject([{ name: 'lock.deadlock', attributes: { 'lock.circle.length': 2 } }]);
  expect(
    spans('lock.acquire').filter(({ attributes }) => attributes['lock.outcome'] === 'deadlock'),
  ).toHaveLength(1);
});
