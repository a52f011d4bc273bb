module trail

go 1.19
