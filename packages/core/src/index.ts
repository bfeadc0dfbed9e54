export { announceProcess, describeShortage, readConnectionBudget, type ConnectionBudget } from './connection-budget.ts';
export { openCore, openTurnPath, type Core, type CoreConfig, type CoreOptions, type TurnPath } from './open-core.ts';
