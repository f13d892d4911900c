/** The looks of the page: both themes, and no scrolling sideways on a phone but inside the table and the picture. */
export const STYLE = `
:root { color-scheme: light dark; font: 16px/1.45 system-ui, sans-serif; --line: light-dark(#c9ccd1, #474b52);
  --good: light-dark(#116329, #57d37a); --bad: light-dark(#a4121f, #ff8a8a); --soft: light-dark(#5a6068, #a5abb4);
  --held: light-dark(#2f6fdb, #7fb0ff); --long: light-dark(#0f766e, #4fd1c5); --fault: light-dark(#f3c0c4, #6b2730); }
body { margin: 1.5rem auto; padding: 0 1rem; max-width: 68rem; }
h1 { margin: 0; font-size: 1.6rem; overflow-wrap: anywhere; }
h2 { margin: 2rem 0 .5rem; font-size: 1.15rem; }
.verdict { font-size: 1.15rem; font-weight: 600; margin: .4rem 0; }
.kept { color: var(--good); } .broken { color: var(--bad); font-weight: 600; }
.not-tested, .not-promised, small { color: var(--soft); }
.scroll { overflow-x: auto; } .scroll:focus-visible { outline: 3px solid var(--held); outline-offset: 2px; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
tbody th { font-weight: 400; min-width: 14rem; } td:last-child { white-space: nowrap; }
.breaches { margin: .4rem 0 0; padding-left: 1.2rem; color: var(--bad); overflow-wrap: anywhere; font-size: .9rem; }
pre { overflow-x: auto; padding: .7rem; border: 1px solid var(--line); }
li { overflow-wrap: anywhere; }
svg { display: block; font: 12px system-ui, sans-serif; } svg text { fill: currentcolor; }
.fault { fill: var(--fault); } .queue { fill: var(--held); } .renewed { fill: var(--long); }
.lost, .crashed { stroke: var(--bad); stroke-width: 2; } .lane { stroke: var(--line); }
.key span { display: inline-block; width: 1em; height: 1em; margin: 0 .3em 0 1em; vertical-align: -.15em; }
`;
