# Boundaries of two arms, T = 6 looks, one-sided error 0.05, by rpact (Debian's r-cran-rpact 3.3.4).
# Rscript rpact-boundaries.R > rpact-boundaries.csv
suppressMessages(library(rpact))
times <- list(equal = (1:6) / 6, growing = 1.6^((1:6) - 6))
cat("# rpact", as.character(packageVersion("rpact")), "\nlooks,shape,t,critical\n")
for (looks in names(times)) {
  for (shape in c(0, 0.25, 0.5)) {
    design <- getDesignGroupSequential(kMax = 6, alpha = 0.05, sided = 1, informationRates = times[[looks]],
                                       typeOfDesign = "WT", deltaWT = shape)
    cat(sprintf("%s,%.2f,%d,%.6f\n", looks, shape, 1:6, design$criticalValues), sep = "")
  }
}
