/** What servers are started with, beside their own options. */
export interface ServerConditions {
  /** The parent of their directories. Absent: the ordinary disk. */
  readonly disk?: string | undefined;
  /** More variables of their environment. */
  readonly env?: NodeJS.ProcessEnv | undefined;
}

let current: ServerConditions = {};

export function currentConditions(): ServerConditions {
  return current;
}

/** Servers that `start` starts have these conditions, at their restarts too. One call at a time. */
export async function underConditions<T>(conditions: ServerConditions, start: () => Promise<T>): Promise<T> {
  const former = current;
  current = conditions;
  try {
    return await start();
  } finally {
    current = former;
  }
}
