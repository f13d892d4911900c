import { type ProcessCall, type ProcessReply, READY, type SentError } from './messages.ts';

type Method = (...args: readonly unknown[]) => unknown;

/**
 * Makes this process the child of a `CallableProcess`: it runs these methods when the parent calls them, and ends with its
 * parent. Where `methods` rejects, every call rejects with that error.
 */
export function serveCalls(methods: object | Promise<object>): void {
  const send = (reply: ProcessReply): void => void process.send?.(reply);
  const serve = async ({ id, method, args }: ProcessCall): Promise<void> => {
    try {
      const served = (await methods) as Record<string, Method>;
      // Most of these processes are killed, after which nothing keeps what they have compiled. Node 20 has no such function.
      if (method === READY) process.getBuiltinModule('node:module').flushCompileCache?.();
      const run = served[method] as Method;
      send({ id, value: method === READY ? undefined : await run.apply(served, [...args]) });
    } catch (error) {
      send({ id, error: sentError(error) });
    }
  };
  // Every call reports the failure of `methods`: it must not end the process as an unhandled rejection before.
  Promise.resolve(methods).catch(() => {});
  process.on('message', (call: ProcessCall) => void serve(call));
  process.on('disconnect', () => process.exit());
}

function sentError(thrown: unknown): SentError {
  if (!(thrown instanceof Error)) return { message: String(thrown) };
  const { message, stack, code, reason } = thrown as Error & { code?: string; reason?: string };
  return { message, stack, ...(code && { code }), ...(reason && { reason }) };
}
