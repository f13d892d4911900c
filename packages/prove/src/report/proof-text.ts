import type { PromiseProof, Proof } from '../proof.ts';

/** A proof in words, for a terminal: lines of at most some hundred characters, without control characters. */
export function proofText(proof: Proof): string {
  const { backend, seed, suite, faults, servers, untested, promises, kept } = proof;
  const made = faults.filter(({ times }) => times > 0).map(({ fault, times }) => `${fault} ${times}×`);
  return [
    `${backend}: ${summaryOf(proof)}`,
    '',
    ...promises.flatMap(linesOf),
    ...(suite === undefined ? [] : suiteLines(suite)),
    '',
    `faults: ${made.join(', ') || 'none'}`,
    ...(servers.length > 0 ? [`behind proxies: ${servers.join(', ')}`] : []),
    ...untested.map((sentence) => `not tested here: ${sentence}`),
    `seed ${seed} makes the same faults in the same order`,
    kept ? 'verdict: every promise that was tested was kept' : 'verdict: BROKEN',
  ]
    .map(clean)
    .join('\n');
}

/** `4 workers for 5 min, 61 204 calls, 52 100 grants, ttl 1 500 ms`. */
export function summaryOf({ workers, ranMs, endedEarly, calls, grants, ttlMs }: Proof): string {
  const early = endedEarly ? ', ended early' : '';
  return `${workers} workers for ${timeOf(ranMs)}${early}, ${grouped(calls)} calls, ${grouped(grants)} grants, ttl ${grouped(ttlMs)} ms`;
}

/** A number with narrow spaces between its thousands. */
export function grouped(number: number): string {
  return String(number).replaceAll(/\B(?=(\d{3})+$)/g, ' ');
}

function timeOf(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  return `${Math.floor(seconds / 60)} min${seconds % 60 === 0 ? '' : ` ${seconds % 60} s`}`;
}

function linesOf({ promise, verdict, tested, tests, measured, broken, breaches }: PromiseProof): string[] {
  const counts =
    verdict === 'not promised'
      ? ''
      : `: ${grouped(tested)} ${tests}${measured === undefined ? '' : `, ${measured}`}`;
  const more = broken - breaches.length;
  return [
    `${verdict.padEnd(12)} ${promise}`,
    ...(counts === ''
      ? []
      : [`${' '.repeat(13)}${counts.slice(2)}${broken > 0 ? `, broken ${grouped(broken)} times` : ''}`]),
    ...breaches.map((sentence) => `${' '.repeat(13)}- ${sentence}`),
    ...(more > 0 ? [`${' '.repeat(13)}- and ${more} more`] : []),
  ];
}

function suiteLines({ passed, failed, untested }: NonNullable<Proof['suite']>): string[] {
  return [
    `${(failed.length > 0 ? 'broken' : 'kept').padEnd(12)} The conformance suite.`,
    `${' '.repeat(13)}${passed} cases passed, ${failed.length} failed, ${untested} do not apply or need a hook of the store`,
    ...failed.map(({ id, reason }) => `${' '.repeat(13)}- ${id}: ${reason.split('\n')[0]}`),
  ];
}

/** Text of servers and of other libraries without characters that change what a terminal shows. */
function clean(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '�');
}
