import type { Section } from './section.ts';

/** A figure that was asked for, and what came of it. */
export interface Target {
  readonly row: string;
  readonly contender: string;
  readonly asked: string;
  readonly measured: string;
  readonly reached: boolean;
}

export function targetSection(targets: readonly Target[]): Section {
  return {
    title: 'Targets',
    table: {
      heading: ['row', 'adapter', 'asked', 'measured', 'reached'],
      lines: targets.map(({ row, contender, asked, measured, reached }) => [
        row,
        contender,
        asked,
        measured,
        reached ? 'yes' : 'NO',
      ]),
    },
  };
}
