/** Renders docs/guarantees.md and docs/generated/guarantees.md from the kept reports of the lab, contract-tests/lab-results/*.json. */
import { writeFileSync } from 'node:fs';
import {
  GUARANTEE_TABLES_PAGE,
  GUARANTEES_PAGE,
  keptReports,
  renderGuarantees,
  renderGuaranteeTables,
} from './render-guarantees.ts';

writeFileSync(GUARANTEES_PAGE, renderGuarantees(keptReports()));
writeFileSync(GUARANTEE_TABLES_PAGE, renderGuaranteeTables(keptReports()));
