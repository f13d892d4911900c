import type { PromiseProof, Proof, SuiteProof } from '../proof.ts';
import { text } from './html-text.ts';
import { grouped, summaryOf } from './proof-text.ts';
import { STYLE } from './page-style.ts';
import { timelinePicture } from './timeline-picture.ts';

/**
 * A proof as a page of HTML, complete in itself: it loads nothing.
 *
 * @param command - the command that repeats the run, as the reader is to type it
 */
export function proofPage(proof: Proof, command: string): string {
  const { backend, kept, faults, servers, untested, suite, timeline, startedAt, seed } = proof;
  const verdict = kept ? 'Every promise that was tested was kept' : 'A promise was broken';
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="content-security-policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${text(`${backend}: ${verdict}`)}</title>
<style>${STYLE}</style>
</head>
<body>
<header>
<h1>${text(backend)}</h1>
<p class="verdict ${kept ? 'kept' : 'broken'}">${kept ? '✓' : '✗'} ${verdict}.</p>
<p>${text(summaryOf(proof))}. Started at ${text(startedAt)}.</p>
</header>
<main>
<h2>Promises</h2>
<div class="scroll" tabindex="0" role="region" aria-label="Promises">
<table>
<thead><tr><th scope="col">Promise</th><th scope="col">Tested</th><th scope="col">Verdict</th></tr></thead>
<tbody>
${promisesOf(proof)}
</tbody>
</table>
</div>
${suite === undefined ? '' : suiteSection(suite)}
<h2>Who held when, and what was done to whom</h2>
${timelinePicture(timeline)}
<h2>Faults</h2>
<ul>
${faults.map(({ fault, about, times }) => `<li><b>${fault}</b>, ${times === 1 ? 'once' : `${grouped(times)} times`}: ${text(about)}.</li>`).join('\n')}
</ul>
${servers.length > 0 ? `<p>Behind proxies: ${text(servers.join(', '))}.</p>` : ''}
<h2>Not tested here</h2>
<ul>
${untested.map((sentence) => `<li>${text(sentence)}</li>`).join('\n')}
</ul>
<h2>Again</h2>
<p>Seed ${seed} draws the same faults in the same order; when they meet the calls of the workers differs.</p>
<pre>${text(command)}</pre>
</main>
</body>
</html>
`;
}

function promisesOf({ promises }: Proof): string {
  return promises.map(rowOf).join('\n');
}

function rowOf({
  promise,
  clauses,
  verdict,
  tested,
  tests,
  measured,
  broken,
  breaches,
}: PromiseProof): string {
  const counts = verdict === 'not promised' ? '–' : `${grouped(tested)} ${tests}`;
  const more = broken > breaches.length ? `<li>and ${grouped(broken - breaches.length)} more</li>` : '';
  const list =
    breaches.length === 0
      ? ''
      : `<ul class="breaches">${breaches.map((sentence) => `<li>${text(sentence)}</li>`).join('')}${more}</ul>`;
  return `<tr><th scope="row">${text(promise)} <small>§${clauses.join(', §')}</small>${list}</th><td>${text(counts)}${
    measured === undefined ? '' : `<br><small>${text(measured)}</small>`
  }</td><td class="${verdict.replace(' ', '-')}">${MARKS[verdict]} ${verdict}</td></tr>`;
}

/** A verdict is to be read without its colour. */
const MARKS: Readonly<Record<PromiseProof['verdict'], string>> = {
  kept: '✓',
  broken: '✗',
  'not tested': '–',
  'not promised': '–',
};

function suiteSection({ passed, failed, untested }: SuiteProof): string {
  return `<h2>The conformance suite</h2>
<p>${passed} cases passed, ${failed.length} failed, ${untested} do not apply or need a hook of the store.</p>
<ul>${failed.map(({ id, reason }) => `<li><b>${text(id)}</b>: ${text(reason)}</li>`).join('')}</ul>`;
}
