package policy

// beforeSchema2 fills in, before a document is read, what one of schema 1 does not say. Debts start with
// the shipped limits; nothing is lent, kept or dedicated.
func (d *Document) beforeSchema2(data []byte) {
	if newestSchema(data) {
		return
	}
	s := Default().Scheduling
	d.Scheduling.RepayPermille, d.Scheduling.DebtTaskUnits, d.Scheduling.DebtTotalUnits = s.RepayPermille, s.DebtTaskUnits, s.DebtTotalUnits
}

// afterSchema1 makes a document of schema 1 one of schema 2. A lane of it lends nothing; should it begin
// to, it does so with the shipped pause.
func (d *Document) afterSchema1() {
	if d.Schema != 1 {
		return
	}
	d.Schema = 2
	for i := range d.Lanes {
		for j := range d.Lanes[i].Accounts {
			if a := &d.Lanes[i].Accounts[j]; a.Cooldown == 0 && a.LendableUnits == 0 {
				a.Cooldown = DefaultCooldown
			}
		}
	}
}
