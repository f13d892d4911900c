// Draws results/*.json into pictures/*.svg. `--check` fails when a picture, or the table below it, differs from the results, and writes nothing.
import { problemsOfPictures, writePictures } from './src/report/pictures.ts';

if (process.argv.includes('--check')) {
  const problems = problemsOfPictures();
  for (const problem of problems) console.error(problem);
  process.exitCode = problems.length > 0 ? 1 : 0;
} else {
  writePictures();
}
