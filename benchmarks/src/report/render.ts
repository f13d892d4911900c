import { headLines, type ReportHead } from './head.ts';
import { markdownSection, plainSection, type Section } from './section.ts';
import { type Target, targetSection } from './target.ts';

/** For a terminal. */
export function renderPlain(
  head: ReportHead,
  sections: readonly Section[],
  targets: readonly Target[] = [],
): string {
  const all = targets.length > 0 ? [...sections, targetSection(targets)] : sections;
  return [headLines(head).join('\n'), ...all.map(plainSection)].join('\n\n');
}

/** What a suite's page of tables has below its head. */
export function renderMarkdown(
  head: ReportHead,
  sections: readonly Section[],
  targets: readonly Target[],
): string {
  const all = targets.length > 0 ? [...sections, targetSection(targets)] : sections;
  const lines = headLines(head).map((line) => `- ${line}`);
  return [lines.join('\n'), ...all.map((section) => markdownSection(head.suite, section))].join('\n\n');
}
