/** Renders docs/guarantees.md from the kept reports of the lab, contract-tests/lab-results/*.json. */
import { writeFileSync } from 'node:fs';
import { GUARANTEES_PAGE, keptReports, renderGuarantees } from './render-guarantees.ts';

writeFileSync(GUARANTEES_PAGE, renderGuarantees(keptReports()));
