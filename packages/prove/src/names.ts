/** What the names of all locks of `prove` begin with; a random part and a slash follow. */
export const RESERVED = 'locks-prove/';

/** The names of the locks that workers use, each by workloads of its own. */
export const NAMES = {
  brief: ['brief-1', 'brief-2'],
  renewed: 'renewed',
  queue: 'queue',
  hurried: 'hurried',
  readersWriter: 'readers-writer',
  permits: 'permits',
} as const;

/** The permits of {@link NAMES.permits}. */
export const LIMIT = 3;
