import type { MarkdownOptions } from 'vitepress';
import { readRepositoryFile } from './repository.ts';

const PICTURE = /^\/(benchmarks\/pictures\/[^/]+\.svg)$/;

/**
 * Shows the pictures of the benchmarks as a part of the page instead of an image: they then have the colours of the theme that the
 * reader chose, and their text can be read by programs.
 */
export const inlinePictures: NonNullable<MarkdownOptions['config']> = (markdown) => {
  const image = markdown.renderer.rules.image;
  markdown.renderer.rules.image = (tokens, index, options, environment, renderer) => {
    const source = tokens[index]?.attrGet('src') ?? '';
    const file = PICTURE.exec(source)?.[1];
    if (file !== undefined) return withoutStyle(readRepositoryFile(file));
    return image?.(tokens, index, options, environment, renderer) ?? '';
  };
};

/** The page's style sheet has the colours, and gives the picture its size. */
function withoutStyle(svg: string): string {
  return svg
    .replaceAll(/<style>.*?<\/style>/gs, '')
    .replace(/ width="\d+" height="\d+"/, '')
    .replaceAll('\n', '');
}
