/** Taken when the module is loaded: fake timers of a test runner put others in their place. */
const hrtime = process.hrtime.bigint.bind(process.hrtime);

/** The clock that `process.hrtime` of Node reads, by system: the number of `clock_gettime`, and the libraries that may have that function. */
const CLOCKS: Readonly<Record<string, { readonly id: number; readonly libraries: readonly string[] }>> = {
  linux: {
    id: 1,
    libraries: ['libc.so.6', `libc.musl-${{ x64: 'x86_64', arm64: 'aarch64' }[process.arch as string]}.so.1`],
  },
  darwin: { id: 4, libraries: ['libSystem.B.dylib'] },
};

type GetTime = (id: number, out: BigInt64Array) => number;

/**
 * Gives the monotonic clock of the system, in nanoseconds, which all processes read alike. `process.hrtime` is that on Node; on Bun and on
 * Deno it counts from the start of each process, and of each thread.
 *
 * @throws the error of `refusal` where the runtime does not let it be read
 */
export function systemClock(refusal: (says: string, cause: unknown) => Error): () => bigint {
  const open =
    'bun' in process.versions ? openWithBun : 'deno' in process.versions ? openWithDeno : undefined;
  if (open === undefined) return hrtime;
  const { id, libraries } = CLOCKS[process.platform] ?? { id: 0, libraries: [] };
  const out = new BigInt64Array(2);
  const failures: unknown[] = [];
  for (const library of libraries) {
    try {
      const getTime = open(library);
      const now = (): bigint => {
        if (getTime(id, out) !== 0) throw new Error(`clock_gettime(${id}) failed`);
        return (out[0] as bigint) * 1_000_000_000n + (out[1] as bigint);
      };
      now();
      return now;
    } catch (error) {
      failures.push(error);
    }
  }
  // Two processes with a clock each would take a lease that is held for one that has ended, and grant twice.
  throw refusal(
    'cannot read the clock that all processes of this machine share: the clock of this runtime counts from the start of the process. Deno needs ' +
      '--allow-ffi; on Windows use Node',
    failures[0],
  );
}

/** What both runtimes have to call functions of the system's libraries. */
interface Ffi {
  dlopen(library: string, symbols: object): { readonly symbols: { readonly clock_gettime: GetTime } };
}

function openWithBun(library: string): GetTime {
  const { dlopen } = process.getBuiltinModule('bun:ffi') as unknown as Ffi;
  return dlopen(library, { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } }).symbols.clock_gettime;
}

function openWithDeno(library: string): GetTime {
  const { Deno } = globalThis as unknown as { readonly Deno: Ffi };
  const symbols = { clock_gettime: { parameters: ['i32', 'buffer'], result: 'i32' } };
  return Deno.dlopen(library, symbols).symbols.clock_gettime;
}
