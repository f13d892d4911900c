import { comparisonSection, killedSection, waitingSection } from '../../compare/tables.ts';
import { whole } from '../../report/figures.ts';
import type { Section } from '../../report/section.ts';
import type { Report } from './result.ts';

export function sectionsOf(report: Report): Section[] {
  return [...report.comparisons.map(comparisonSection), ...otherSections(report)];
}

function otherSections({ core, renewal, waiting, killed, memory }: Report): Section[] {
  const sections: Section[] = [];
  if (core !== undefined) {
    const { withCoreMicros, bareBackendMicros, coreMicros } = core;
    sections.push({
      title: 'Core: processor time of one uncontended acquire and release, memory backend',
      table: {
        heading: ['', 'µs'],
        lines: [
          ['with core', withCoreMicros.toFixed(2)],
          ['bare backend', bareBackendMicros.toFixed(2)],
          ['core itself', coreMicros.toFixed(2)],
        ],
      },
    });
  }
  if (renewal !== undefined) {
    sections.push({
      title: 'Renewal: leases kept alive by one process',
      table: {
        heading: [
          '',
          'leases',
          'ttl ms',
          'requests a round',
          'timers',
          'loop delay p99 ms',
          'max ms',
          'still valid',
        ],
        lines: renewal.map((result) => [
          result.contender,
          whole(result.leases),
          whole(result.ttlMs),
          result.requestsByRound.join(', '),
          String(result.timers),
          result.delayP99Ms.toFixed(1),
          result.delayMaxMs.toFixed(1),
          whole(result.valid),
        ]),
      },
    });
  }
  if (waiting !== undefined) sections.push(waitingSection(waiting));
  if (killed !== undefined) sections.push(killedSection(killed));
  if (memory !== undefined) {
    sections.push({
      title: 'Memory: distinct names acquired and released, 64 at once',
      table: {
        heading: ['', 'names', 'pairs/s', 'heap growth MB', 'token keys left', 'other keys left'],
        lines: memory.map((result) => [
          result.contender,
          whole(result.names),
          whole(result.perSecond),
          (result.heapGrowthBytes / 2 ** 20).toFixed(2),
          whole(result.tokenKeys),
          whole(result.otherKeys),
        ]),
      },
    });
  }
  return sections;
}
