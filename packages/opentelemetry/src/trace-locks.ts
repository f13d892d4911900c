import { type BaseLease, isLockError, type Lease, type LockTrace } from '@locks/core';
import { matching, optional, type OptionTable, readOptions } from '@locks/core/backend';
import {
  context,
  type Context,
  type Span,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api';
import { tracingChannel } from 'node:diagnostics_channel';
import { attributesOf, errorType, groupWith, type GroupOf, outcomeOf, readGroupOf } from './attributes.ts';

/** Options of {@link traceLocks}. */
export interface TraceLocksOptions {
  /**
   * The destination of the spans.
   * @defaultValue the global one
   */
  readonly tracerProvider?: TracerProvider | undefined;
  /**
   * Maps the name of a lock to the attribute `lock.group` of its spans.
   * @defaultValue no such attribute
   */
  readonly groupOf?: GroupOf | undefined;
}

const TABLE = {
  tracerProvider: optional(
    matching(
      'a TracerProvider',
      (value): value is TracerProvider =>
        typeof (value as Partial<TracerProvider> | null)?.getTracer === 'function',
    ),
  ),
  groupOf: optional(readGroupOf),
} satisfies OptionTable<TraceLocksOptions>;

type Operation = 'acquire' | 'run' | 'release';

// setup: import { traceLocks } from '@locks/opentelemetry';
/**
 * Makes spans of all locks of this process, of every manager and backend: `lock.acquire`, `lock.run` and `lock.release`, in the
 * context of their caller. The work of `run` is in the context of its span, as are its acquire and release.
 *
 * @returns a function that ends the tracing; a span that has begun still ends
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const stop = traceLocks({ groupOf: (name) => name.split(':', 1)[0] });
 * stop(); // no more
 * ```
 */
export function traceLocks(options?: TraceLocksOptions): () => void {
  const { tracerProvider = trace.getTracerProvider(), groupOf } = readOptions('traceLocks()', options, TABLE);
  const tracer = new LockTracer(tracerProvider.getTracer('@locks/opentelemetry'), groupWith(groupOf));
  const stops = [tracer.follow('acquire'), tracer.follow('run'), tracer.follow('release')];
  return () => {
    for (const stop of stops) stop();
  };
}

interface OpenSpan {
  readonly span: Span;
  readonly startedAt: number;
  /** The context around the span. */
  readonly around: Context;
}

type TracedCall = LockTrace & { [span: symbol]: OpenSpan | undefined };

/** Turns the messages of the tracing channels into spans. */
class LockTracer {
  readonly #tracer: Tracer;
  readonly #groupOf: GroupOf;
  /** The key of the span in a message: a `WeakMap` with an entry for each call takes the garbage collector longer than the span. */
  readonly #open = Symbol('locks span');
  /** The spans of `run` whose acquire, the first one inside, has not ended: it tells them its token and wait. */
  readonly #startedRuns = new WeakSet<Span>();

  constructor(tracer: Tracer, groupOf: GroupOf) {
    this.#tracer = tracer;
    this.#groupOf = groupOf;
  }

  follow(operation: Operation): () => void {
    const { start, asyncEnd } = tracingChannel<unknown, LockTrace>(`locks:${operation}`);
    let open = 0;
    let isStopped = false;
    const onStart = (message: unknown): void => {
      open += 1;
      this.#start(operation, message as LockTrace);
    };
    const onEnd = (message: unknown): void => {
      if (this.#end(operation, message as LockTrace)) open -= 1;
      if (isStopped && open === 0) asyncEnd.unsubscribe(onEnd);
    };
    start.subscribe(onStart);
    asyncEnd.subscribe(onEnd);
    return () => {
      isStopped = true;
      start.unsubscribe(onStart);
      if (open === 0) asyncEnd.unsubscribe(onEnd);
    };
  }

  #start(operation: Operation, message: LockTrace): void {
    const { name, backend, mode, fencingToken } = message;
    const around = context.active();
    const attributes = attributesOf(backend, mode.kind, this.#groupOf(name));
    if (fencingToken !== undefined) attributes['lock.fencing_token'] = String(fencingToken);
    const span = this.#tracer.startSpan(`lock.${operation}`, { attributes }, around);
    if (operation === 'run') this.#startedRuns.add(span);
    (message as TracedCall)[this.#open] = { span, startedAt: performance.now(), around };
    const inside = trace.setSpan(around, span);
    const { enter } = message;
    message.enter = (call) => context.with(inside, () => (enter === undefined ? call() : enter(call)));
  }

  /** Ends the span of a call; gives whether it was open. */
  #end(operation: Operation, message: LockTrace): boolean {
    const open = (message as TracedCall)[this.#open];
    if (open === undefined) return false;
    (message as TracedCall)[this.#open] = undefined;
    const { span } = open;
    if (operation === 'acquire') this.#acquired(open, message);
    if ('error' in message) {
      span.setAttribute('error.type', errorType(message.error));
      // The status has no message, since the error's message has the name of the lock. An abort by the caller is no error.
      if (operation !== 'acquire' || outcomeOf(message.error) !== 'aborted')
        span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
    return true;
  }

  #acquired({ span, startedAt, around }: OpenSpan, message: LockTrace): void {
    const waited = (performance.now() - startedAt) / 1_000;
    const lease = message.result as BaseLease | undefined;
    const outcome = 'error' in message ? outcomeOf(message.error) : lease ? 'acquired' : 'contended';
    const token = (lease as Lease | undefined)?.fencingToken;
    const attributes = {
      'lock.wait.duration': waited,
      ...(token !== undefined && { 'lock.fencing_token': String(token) }),
    };
    span.setAttributes({ ...attributes, 'lock.outcome': outcome });
    // The members of a circle have names of locks, and only their number is told.
    const members = isLockError(message.error) ? message.error.circle?.length : undefined;
    if (members !== undefined) span.addEvent('lock.deadlock', { 'lock.circle.length': members });
    const parent = trace.getSpan(around);
    if (parent !== undefined && this.#startedRuns.delete(parent)) parent.setAttributes(attributes);
  }
}
